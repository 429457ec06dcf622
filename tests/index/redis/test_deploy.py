"""A cluster made as docs/howto/run-a-cluster.md describes, from deploy/cluster, keeps working when a server dies."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import redis

import likewise
from likewise.redis import RedisIndex
from tests.index.redis.cluster.servers import free_port, wait_for

pytestmark = pytest.mark.rounds

FOLDER = Path(__file__).parents[3] / "deploy" / "cluster"
CONFIGURATION = FOLDER / "node.conf"
UNIT = FOLDER / "likewise-node@.service"
NUM_REPLICAS = 2
RECIPE = likewise.Recipe.simhash(within=3)


class Servers:
    """Nine servers with the configuration of deploy/cluster, except that failures are noticed sooner."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.ports = []
        self.processes = {}
        for _ in range(3 * (1 + NUM_REPLICAS)):
            self.ports.append(free_port())
            self.start(self.ports[-1])

    def start(self, port):
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        self.processes[port] = subprocess.Popen(
            [self.program, CONFIGURATION, "--port", str(port), "--dir", folder, "--cluster-node-timeout", "700"],
            stdout=subprocess.DEVNULL,
        )

    def ask(self, port, *command):
        with redis.Redis("127.0.0.1", port, protocol=2, socket_timeout=5) as client:
            client.response_callbacks.clear()
            return client.execute_command(*command)

    def is_up(self, port):
        try:
            return bool(self.ask(port, "PING"))
        except redis.exceptions.RedisError:
            return False

    def form(self, command_line):
        for port in self.ports:
            wait_for(lambda port=port: self.is_up(port), "a server does not come up")
        subprocess.run(
            [
                command_line,
                "--cluster",
                "create",
                *(f"127.0.0.1:{port}" for port in self.ports),
                *("--cluster-replicas", str(NUM_REPLICAS), "--cluster-yes"),
            ],
            check=True,
            capture_output=True,
        )
        wait_for(lambda: all(len(roles[2]) == NUM_REPLICAS for roles in self.masters().values()), "no replicas", 60)

    def masters(self):
        """Return the replies to ROLE of the masters that are up."""
        roles = {port: self.ask(port, "ROLE") for port in self.ports if self.is_up(port)}
        return {port: role for port, role in roles.items() if role[0] == b"master"}

    def close(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def servers(program, tmp_path):
    """Form a cluster of three masters with two replicas each."""
    command_line = shutil.which(Path(program).name.replace("server", "cli"))
    if command_line is None:
        pytest.skip("the command line of the server is not installed")
    # Nine servers may fail to find each other on a busy machine; then new ones are started.
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        all_servers = Servers(program, tmp_path / str(number))
        try:
            all_servers.form(command_line)
            break
        except AssertionError:
            all_servers.close()
            if number == 2:
                raise
    try:
        yield all_servers
    finally:
        all_servers.close()


def batches(first, last):
    for number in range(first, last):
        names = [f"{number}-{i}" for i in range(20)]
        # Every second document is near an earlier one.
        yield (
            names,
            [" ".join(f"w{(number * 10 + i // 2) * 31 + k}" for k in range(90)) + f" {i % 2}" for i in range(20)],
        )


@pytest.mark.rounds
def test_a_master_dies_and_returns(servers, tmp_path):
    with (
        RedisIndex(
            f"redis://127.0.0.1:{servers.ports[0]}", RECIPE, partitions=12, durability="replicated", failover_s=60
        ) as index,
        likewise.Index(tmp_path / "alone", RECIPE) as alone,
    ):

        def check(first, last):
            for names, texts in batches(first, last):
                expected = alone.check_and_add_batch(names, texts)
                assert index.check_and_add_batch(names, texts).kept_ids == expected.kept_ids

        check(0, 3)
        # Not the server of the URL, which is the first.
        port = next(port for port in servers.masters() if port != servers.ports[0])
        servers.processes[port].kill()
        servers.processes[port].wait()
        check(3, 6)
        servers.start(port)
        wait_for(lambda: servers.is_up(port) and servers.ask(port, "ROLE")[0] == b"slave", "it does not return", 60)
        check(6, 8)
        assert len(index) == len(alone) == 8 * 20


def test_the_unit_waits_longer_than_a_failover():
    timeout_ms = int(re.search(r"^cluster-node-timeout (\d+)$", CONFIGURATION.read_text(), re.MULTILINE)[1])
    restart_s = int(re.search(r"^RestartSec=(\d+)$", UNIT.read_text(), re.MULTILINE)[1])
    assert restart_s * 1000 >= 4 * timeout_ms
