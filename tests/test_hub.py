"""The way to the Hugging Face hub and back, with a hub of our own on this machine that speaks its protocol."""

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest
from test_cli import save_model

from mathllm.transformer import gpt2_config

pytestmark = pytest.mark.slow

NAME, COMMIT = "someone/tiny", "0123456789abcdef0123456789abcdef01234567"


def answers(files):
    """What a hub that has these files says to `snapshot_download`: a text and its headers, by their address."""
    repository = {"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
    revisions = [f"/api/models/{NAME}{end}" for end in ("", "/revision/main", f"/revision/{COMMIT}")]
    said, entries = {address: (json.dumps(repository).encode(), {}) for address in revisions}, []
    for name, content in files.items():
        large = name.endswith(".safetensors")
        hashed = hashlib.sha256(content) if large else hashlib.sha1(b"blob %d\0" % len(content) + content)
        checksum, size = hashed.hexdigest(), len(content)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{checksum}"'}
        entry = {"type": "file", "path": name, "size": size, "oid": checksum}
        if large:  # of large files the hub tells the checksum and the size apart
            headers |= {"X-Linked-Etag": headers["ETag"], "X-Linked-Size": str(size)}
            entry |= {"lfs": {"oid": checksum, "size": size, "pointerSize": 134}}
        said[f"/{NAME}/resolve/{COMMIT}/{name}"] = content, headers
        entries.append(entry)
    return said | {f"/api/models/{NAME}/tree/{COMMIT}": (json.dumps(entries).encode(), {})}


class Hub(http.server.BaseHTTPRequestHandler):
    """A server of one repository, with the checksums of its files as their names."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        address = self.path.partition("?")[0]
        self.server.asked.append(f"{self.command} {address}")
        unknown = b"{}", {"X-Error-Code": "RepoNotFound"}
        content, headers = answers(self.server.files).get(address, unknown)
        self.send_response(404 if "X-Error-Code" in headers else 200)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        return content

    def do_GET(self):
        self.wfile.write(self.do_HEAD())

    def log_message(self, *_):
        pass


@pytest.fixture
def hub(tmp_path):
    """A hub with one small model, and files that are not to be fetched."""
    save_model(tmp_path / "original", gpt2_config)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    server.daemon_threads = True
    server.files = {file.name: file.read_bytes() for file in (tmp_path / "original").iterdir()}
    server.files |= {"pytorch_model.bin": b"pickled", "modeling.py": b"raise SystemExit"}
    server.asked = []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def program(hub, tmp_path):
    """The command line as a user has it, with this hub and a cache of its own."""
    settings = {
        "HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HOME": str(tmp_path / "home"),
        "HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
    }  # fmt: skip

    def program(*arguments, **more):
        command = [sys.executable, "-m", "mathllm", *map(str, arguments)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "HUGGING"))} | settings | more
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return program


def test_a_model_is_fetched_verified_and_found_again_without_a_network(hub, program, tmp_path):
    done = program("models", "install", NAME)
    place = tmp_path / "cache" / "models--someone--tiny" / "snapshots" / COMMIT
    assert done.stdout == f"{NAME}: 4 files verified, in {place}\n", (done.stderr, hub.asked)
    assert sorted(file.name for file in place.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    ]  # fmt: skip
    assert all((place / name).read_bytes() == hub.files[name] for name in os.listdir(place))
    assert not [line for line in hub.asked if line.endswith((".bin", ".py"))]  # nothing that could be executed

    fetched = len(hub.asked)
    said = program("generate", NAME, "the cat", "--max-new-tokens", 6, HF_HUB_OFFLINE="1")
    assert said.stdout == program("generate", tmp_path / "original", "the cat", "--max-new-tokens", 6).stdout
    assert len(hub.asked) == fetched  # from the cache


def test_a_model_that_the_hub_does_not_have_or_whose_weights_cannot_be_read_is_refused_in_a_line(hub, program):
    done = program("models", "install", "someone/else")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: the Hugging Face hub has no model someone/else\n"
    del hub.files["model.safetensors"]
    done = program("models", "install", NAME)
    assert done.returncode != 0
    assert f"{NAME} cannot be read: its repository has no model.safetensors" in done.stderr
