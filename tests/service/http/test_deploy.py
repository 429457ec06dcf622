"""What `deploy/` says of options, ports, routes, metrics and labels is what the service has, and its scripts work."""

import json
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace

import pytest

import likewise
from tests.index.redis.cluster.servers import free_port
from tests.waiting import LIMIT_S, wait_until

yaml = pytest.importorskip("yaml", reason="comes with the group test")
pytest.importorskip("fastapi", reason="needs likewise[server]")

DEPLOY = Path(__file__).parents[3] / "deploy"
COMPOSE = DEPLOY / "compose"
# Labels that Prometheus adds itself.
OWN_LABELS = {"le", "instance", "job", "alertname"}


def text_of(name):
    return (COMPOSE / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load(text_of("compose.yaml"))["services"]


@pytest.fixture(scope="module")
def families():
    from likewise.service.metrics import Metrics

    return list(Metrics(SimpleNamespace(collections={})).registry.collect())


def samples(family):
    endings = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}
    return {family.name + ending for ending in endings.get(family.type, [""])}


def expressions():
    rules = yaml.safe_load(text_of("alerts.yml"))["groups"][0]["rules"]
    panels = json.loads(text_of("grafana/dashboard.json"))["panels"]
    found = [rule["expr"] for rule in rules] + [target["expr"] for panel in panels for target in panel["targets"]]
    shown = json.dumps([rule["annotations"] for rule in rules])
    shown += "".join(target["legendFormat"] for panel in panels for target in panel["targets"])
    return found, shown


def test_rules_and_dashboard_name_metrics_and_labels_of_the_service(families):
    from likewise.service.metrics import SHARED_GAUGES, Metrics
    from likewise.service.problems import TYPES

    own = Metrics(SimpleNamespace(collections={}))
    labels = {"collection"} | {name for metric in vars(own).values() for name in getattr(metric, "_labelnames", ())}
    exported = set().union(*map(samples, families))
    assert {f"likewise_{name}" for name in SHARED_GAUGES} <= exported
    found, shown = expressions()
    for expression in found:
        names = set(re.findall(r"\blikewise_\w+", expression))
        assert names <= exported, names - exported
        by = {name.strip() for part in re.findall(r"by \(([^)]*)\)", expression) for name in part.split(",")}
        matched = set(re.findall(r"(\w+)=~?\"", expression))
        assert by | matched <= labels | OWN_LABELS
        for reasons in re.findall(r'reason=~"([^"]*)"', expression):
            assert set(reasons.split("|")) <= set(TYPES)
    assert set(re.findall(r"{{ ?(?:\$labels\.)?(\w+) ?}}", shown)) <= labels | OWN_LABELS


def test_a_metric_that_does_not_exist_is_seen(families):
    assert "likewise_verdicts_total" in set().union(*map(samples, families))
    assert "likewise_verdicts" not in set().union(*map(samples, families))


def test_the_reference_names_the_metrics_of_the_service(families):
    page = (DEPLOY.parent / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(likewise_\w+)`", page))
    assert documented == {name.removesuffix("_bucket") for family in families for name in sorted(samples(family))[:1]}


def test_panels_have_their_places(families):
    board = json.loads(text_of("grafana/dashboard.json"))
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        assert at["x"] + at["w"] <= 24
        taken |= cells
    source = yaml.safe_load(text_of("grafana/datasource.yaml"))["datasources"][0]
    assert {panel["datasource"]["uid"] for panel in board["panels"]} == {source["uid"]}


def test_commands_of_the_services_have_options_that_exist(services):
    from likewise.cli.serve import command

    options = {name for parameter in command.params for name in parameter.opts}
    steps = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    entries = [json.loads(re.search(r"^ENTRYPOINT (.+)$", steps, re.M)[1])]
    entries += [one["entrypoint"] for one in services.values() if one.get("entrypoint", [""])[0] == "likewise"]
    assert len(entries) == 3
    for entry in entries:
        assert entry[:2] == ["likewise", "serve"]
        assert {word for word in entry if word.startswith("--")} <= options
    # The extras that these services need.
    extras = re.search(r"\.whl\)\[([\w,]+)\]", steps)[1].split(",")
    assert {"server", "redis"} <= set(extras)


def test_ports_paths_files_and_limits_are_those_of_the_service(services, tmp_path):
    from likewise.cli.serve import command
    from likewise.service import Settings, create_app

    settings = Settings()
    port = next(parameter.default for parameter in command.params if parameter.name == "port")
    with_ports = "\n".join(
        [*map(text_of, ("compose.yaml", "Caddyfile", "prometheus.yml")), (DEPLOY / "Dockerfile").read_text()]
    )
    assert set(re.findall(r"(?:likewise|shared|127\.0\.0\.1|EXPOSE)[: ](\d{4})\b(?!:)", with_ports)) == {str(port)}
    (tmp_path / "served").mkdir()
    routes = {route.path for route in create_app(tmp_path / "served").routes}
    proxy = text_of("Caddyfile")
    scrape = yaml.safe_load(text_of("prometheus.yml"))
    assert re.search(r"@metrics path (\S+)", proxy)[1] in routes
    assert scrape["scrape_configs"][0]["metrics_path"] in routes
    assert f"max_size {settings.max_stream_bytes >> 20}MiB" in proxy
    assert int(services["likewise"]["stop_grace_period"].removesuffix("s")) > settings.drain_s
    for service in services.values():
        for volume in service.get("volumes", ()):
            place = volume.partition(":")[0]
            assert not place.startswith(".") or (COMPOSE / place).is_file(), volume
    # The paths at which Prometheus finds its files are where they are mounted.
    mounted = {volume.split(":")[1] for volume in services["prometheus"]["volumes"]}
    assert set(scrape["rule_files"]) <= mounted
    key = Path(scrape["scrape_configs"][0]["authorization"]["credentials_file"])
    assert services["prometheus"]["secrets"] == [key.name]
    named = set(re.findall(r"{\$(\w+)", proxy))
    assert named == set(services["proxy"]["environment"])


def test_units_run_files_that_are_there():
    unit = (DEPLOY / "likewise-snapshots.service").read_text(encoding="utf-8")
    timer = (DEPLOY / "likewise-snapshots.timer").read_text(encoding="utf-8")
    assert "OnCalendar=" in timer
    program = re.search(r"^ExecStart=(\S+) (\S+)", unit, re.M)
    assert (DEPLOY / Path(program[2]).name).is_file()


def test_an_index_lives_on_the_redis_server_of_the_file(services, tmp_path):
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        pytest.skip("no redis-server here")
    from likewise.redis import RedisIndex

    port = free_port()
    _, *options = services["redis"]["command"]
    server = subprocess.Popen(
        [program, *options, "--port", str(port), "--dir", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    try:
        assert wait_until(lambda: _opens(RedisIndex, port))
        with RedisIndex(f"redis://127.0.0.1:{port}/0", likewise.Recipe.simhash(within=3)) as index:
            assert index.check_and_add("a", "one fine day in may").is_new
    finally:
        server.terminate()
        server.wait()


def _opens(index, port):
    try:
        index(f"redis://127.0.0.1:{port}/0", likewise.Recipe.simhash(within=3)).close()
    except likewise.errors.LikewiseError:
        return False
    return True


def rotated(service, *options):
    command = [sys.executable, DEPLOY / "rotate_snapshots.py", service.url, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def test_snapshots_are_rotated(start, tmp_path):
    service = start()
    with service.client() as client:
        for name in ("news", "pages"):
            client.create_collection(name, likewise.Recipe.simhash(within=3))
    with service.client("pages") as client:
        client.check_and_add("a", "one fine day in may")
        first = client.snapshot()
    done = rotated(service, "--keep", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(line.split()[:2] for line in done.stdout.splitlines()) == [["news:", "new"], ["pages:", "new"]]
    for _ in range(2):
        done = rotated(service, "--keep", "2", "--collection", "pages")
    assert "pages: deleted" in done.stdout
    copies = sorted((service.path / ".snapshots" / "pages").iterdir())
    assert len(copies) == 2
    assert first not in {copy.name for copy in copies}
    with likewise.Index(copies[-1], read_only=True) as copy:
        assert copy.get("a") is not None
    missing = rotated(service, "--collection", "other")
    assert missing.returncode == 1
    assert "other" in missing.stderr
    assert rotated(service, "--keep", "0").returncode == 2


def test_the_proxy_passes_requests_on_and_hides_the_metrics(start, tmp_path):
    caddy = shutil.which("caddy")
    if caddy is None:
        pytest.skip("caddy is not installed")
    service, port = start(), free_port()
    names = {"LIKEWISE_HOST": f"http://127.0.0.1:{port}", "LIKEWISE_UPSTREAM": f"127.0.0.1:{service.port}"}
    names |= {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    admin = tmp_path / "Caddyfile"
    admin.write_text(f"{{\n\tadmin off\n}}\n{text_of('Caddyfile')}")
    proxy = subprocess.Popen(
        [caddy, "run", "--adapter", "caddyfile", "--config", admin],
        env=names, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        place = f"http://127.0.0.1:{port}"
        assert wait_until(lambda: _status(f"{place}/healthz") == 200)
        assert _status(f"{place}/metrics") == 404
        with likewise.Client(place, timeout_s=LIMIT_S) as client:
            client.create_collection("pages", likewise.Recipe.simhash(within=3))
        with likewise.Client(place, collection="pages", timeout_s=LIMIT_S) as client:
            assert client.check_and_add("a", "one fine day in may").is_new
    finally:
        proxy.terminate()
        proxy.wait()


def _status(url):
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return None


@pytest.mark.parametrize("name", ["alerts.yml", "prometheus.yml"])
def test_prometheus_reads_its_files(name, tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    (tmp_path / "key").write_text("key")
    config = (
        text_of(name)
        .replace("/etc/prometheus/", f"{COMPOSE}/")
        .replace("/run/secrets/likewise-metrics-key", str(tmp_path / "key"))
    )
    (tmp_path / name).write_text(config)
    kind = "rules" if name == "alerts.yml" else "config"
    subprocess.run([promtool, "check", kind, tmp_path / name], check=True, capture_output=True)


def test_alerts_fire_when_they_should(tmp_path):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    cases = Path(__file__).with_name("alerts.yml").read_text(encoding="utf-8")
    (tmp_path / "cases.yml").write_text(cases.replace("ALERTS", str(COMPOSE / "alerts.yml")))
    ran = subprocess.run(
        [promtool, "test", "rules", tmp_path / "cases.yml"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
