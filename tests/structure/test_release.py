"""Parts of a release: the workflow, the tools that finish and try wheels, the service's image."""

import io
import re
import tarfile
import zipfile
from pathlib import Path

import pytest
from tools import try_wheel

ROOT = Path(__file__).parent.parent.parent
TARGETS = {
    "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-apple-darwin",
    "x86_64-pc-windows-msvc", "x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl",
}  # fmt: skip
# Split so that no line here is itself a home directory.
HOMES = [
    b"/ro" b"ot/.cargo", b"/ho" b"me/runner/wo" b"rk/", b"/Us" b"ers/runner/", b"C:\\Us" b"ers\\runneradmin",
    b"D:/Us" b"ers/me", str(ROOT).encode() + b"/crates",
]  # fmt: skip


@pytest.fixture(scope="module")
def workflow():
    yaml = pytest.importorskip("yaml", reason="comes with the group test")
    return yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8"))


def commands(job):
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_every_platform_gets_a_wheel_that_is_finished_and_tried(workflow):
    wheel = workflow["jobs"]["wheel"]
    assert {entry["target"] for entry in wheel["strategy"]["matrix"]["include"]} == TARGETS
    assert len({entry["name"] for entry in wheel["strategy"]["matrix"]["include"]}) == len(TARGETS)
    run = commands(wheel)
    assert run.index("finish_wheel.py") < run.index("try_wheel.py")
    assert "try_wheel.py" in commands(workflow["jobs"]["sdist"])
    build, free_threaded = [step for step in wheel["steps"] if "maturin" in step.get("uses", "")]
    for step in (build, free_threaded):
        assert {"--locked", "--release"} <= set(step["with"]["args"].split())
    assert "--interpreter python3.14t" in free_threaded["with"]["args"]
    # A wheel of the stable ABI for each target, one without the GIL for each that is tried on its own system, an sdist.
    on_alpine = [entry for entry in wheel["strategy"]["matrix"]["include"] if "alpine" in entry]
    assert {entry["target"] for entry in on_alpine} == {target for target in TARGETS if target.endswith("-musl")}
    assert {entry["manylinux"] for entry in on_alpine} == {"musllinux_1_2"}
    num_free_threaded = len(TARGETS) - len(on_alpine)
    publish = commands(workflow["jobs"]["publish"])
    counts = [int(count) for count in re.findall(r"wc -l\)\" = (\d+)", publish)]
    assert counts == [len(TARGETS), num_free_threaded, len(TARGETS) + num_free_threaded + 1]


def test_steps_for_one_system_are_skipped_on_the_others(workflow):
    steps = workflow["jobs"]["wheel"]["steps"]
    for step in steps:
        if "docker" in step.get("run", "") or "3.14" in str(step.get("with", {})):
            assert "matrix.alpine" in step["if"], step


def test_no_folder_of_a_build_machine_is_left_in(workflow):
    flags = workflow["env"]["RUSTFLAGS"].replace("${{ github.workspace }}", "WORKSPACE").split()
    places = [re.fullmatch(r"--remap-path-prefix=(.+)=(home|likewise)", flag)[1] for flag in flags]
    assert len(places) == 5
    # If several prefixes match, rustc uses the last.
    assert places[-1] == "WORKSPACE"


def test_the_workflow_holds_no_secret_and_publishes_tags_alone(workflow):
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8")
    assert "secrets." not in text
    assert "pull_request_target" not in text
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}


def test_tools_and_files_that_the_workflow_names_are_there(workflow):
    named = {name for job in workflow["jobs"].values() for name in re.findall(r"tools/\w+\.py", commands(job))}
    assert named
    assert all((ROOT / name).is_file() for name in named)


@pytest.mark.parametrize("place", HOMES)
@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
def test_a_package_that_names_a_folder_of_its_maker_is_refused(place, kind, tmp_path):
    package = tmp_path / f"likewise-1.{kind}"
    for content, is_refused in [(b"\x7fELF\0home/.cargo/registry/x.rs\0/rustc/5/library", False), (place, True)]:
        content = b"\0" * 100 + content + b"/lib.rs\0"
        if kind == "whl":
            with zipfile.ZipFile(package, "w") as archive:
                archive.writestr("likewise/_native.abi3.so", content)
        else:
            with tarfile.open(package, "w:gz") as archive:
                about = tarfile.TarInfo("likewise-1/native")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
        if is_refused:
            with pytest.raises(AssertionError, match="names"):
                try_wheel.check_places(package)
        else:
            try_wheel.check_places(package)


def test_the_image_is_made_from_what_is_there():
    text = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line and not line.startswith("#")]
    assert {step for step, _ in steps} <= {
        "FROM", "RUN", "WORKDIR", "COPY", "USER", "VOLUME", "EXPOSE", "ENTRYPOINT", "HEALTHCHECK", "STOPSIGNAL"
    }  # fmt: skip
    images = [argument.split()[0] for step, argument in steps if step == "FROM"]
    versions = dict(re.findall(r'^(rust-version|requires-python) = "(?:>=)?([0-9.]+)"', both_manifests(), re.M))
    assert images[0].startswith(f"rust:{versions['rust-version']}-")
    assert tuple(map(int, re.match(r"python:(\d+)\.(\d+)-", images[1]).groups())) >= (3, 11)
    # The same C library, so that what the first builds runs in the second.
    assert len({image.rsplit("-", 1)[1] for image in images}) == 1
    left_out = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    for needed in ["crates", "python", "tools", "Cargo.toml", "Cargo.lock", "pyproject.toml", "README.md", "LICENSE"]:
        assert needed not in left_out
        assert (ROOT / needed).exists()


def both_manifests():
    return (ROOT / "Cargo.toml").read_text(encoding="utf-8") + (ROOT / "pyproject.toml").read_text(encoding="utf-8")
