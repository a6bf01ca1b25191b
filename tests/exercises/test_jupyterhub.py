"""A class on JupyterHub, set up by the commands of the instructor's chapter: a teacher and two learners in browsers.

The hub and every command run in a view of this machine with accounts, homes and settings of its own: the accounts are
made by useradd and vanish with the view. The tests are the stations of one journey, in this order.
"""

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from grading import PATIENCE, ROOT, SUCCEEDS
from lab import CHANGED, assignments, cell, is_up, numbers, open_notebook, run, window
from mathllm_exercises import item

NAME = "01_vectors"
NORM, OWN, TEXT = "01-vectors-norm", "01-vectors-own_length", "01-vectors-line_or_plane"
PROOF = "On a line the outer two are 2 apart, as **ada** alone knows."
REMARK, BY_HAND = "The plane is missing, ada.", 4
PASSWORD = "a-password-of-this-test"
PROXY = shutil.which("configurable-http-proxy")

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("sandboxed")]
if os.geteuid() != 0:
    pytestmark.append(pytest.mark.skip("only root can start servers for several accounts"))
elif find_spec("jupyterhub") is None or PROXY is None:
    pytestmark.append(pytest.mark.skip("NO HUB WAS STARTED: jupyterhub or configurable-http-proxy is not installed"))

CHAPTER = (ROOT / "book" / "teaching.md").read_text(encoding="utf-8")
SECTION = CHAPTER.partition("\n## JupyterHub\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```\w+\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)
_, ACCOUNTS, SETTINGS, COURSE = BLOCKS  # the first installs what this test runs with
START = re.search(r"`(cd /srv/jupyterhub && .*?)`", SECTION)[1]
GRADE = f"nbgrader collect {NAME} --update\npython -m mathllm_grading grade {NAME}"
FEEDBACK = f"nbgrader generate_feedback {NAME}\nnbgrader release_feedback {NAME}"
EXCHANGE = "/usr/local/share/nbgrader/exchange"

ATTACKS = f"""{SUCCEEDS}
homes, exchange = pathlib.Path.home().parent, pathlib.Path("{EXCHANGE}/mathllm")
attacks = {{
    "look into her home": lambda: os.listdir(homes / "ada"),
    "read her notebook": lambda: (homes / "ada/{NAME}/{NAME}.ipynb").read_text(),
    "list what was handed in": lambda: os.listdir(exchange / "inbound"),
    "list all feedback": lambda: os.listdir(exchange / "feedback"),
    "rename what was handed in": lambda: (exchange / "inbound").rename(exchange / "old"),
    "rename the course": lambda: exchange.rename(exchange.with_name("old")),
    "look into the course": lambda: os.listdir(homes / "teacher/course"),
}}
print(json.dumps([name for name, attack in attacks.items() if succeeds(attack)]))
"""


class Machine:
    """This machine with an /etc, homes, an exchange and a /srv of its own, and the Python of the tests in /opt."""

    def __init__(self, folder):
        self.folder = Path(folder)
        subprocess.run(["cp", "--archive", "/etc", self.folder], check=True)
        for name in ("home", "share", "srv"):
            (self.folder / name).mkdir()
        shutil.copytree(ROOT / "tools/jupyter/labconfig", self.folder / "etc/jupyter/labconfig", dirs_exist_ok=True)

    def view(self, *command):
        """The command that runs a command there, as root, and ends all that it started."""
        lifeline = ["setpriv", "--pdeathsig=KILL", "unshare", "--fork", "--pid", "--kill-child", "--mount-proc"]
        view = [*lifeline, "bwrap", "--dev-bind", "/", "/"]
        for place in ("/opt", "/root", "/var/log", "/var/mail"):
            view += ["--perms", "0755", "--tmpfs", place]
        view += ["--perms", "1777", "--tmpfs", "/tmp", "--bind", str(self.folder / "home"), "/home"]
        for place in map(Path, (sys.base_prefix, sys.prefix, ROOT, Path(PROXY).resolve().parents[2])):
            view += [word for parent in reversed(place.parents[:-1]) for word in ("--dir", str(parent))]
            view += ["--ro-bind", str(place), str(place)]
        for name, place in {"etc": "/etc", "share": "/usr/local/share", "srv": "/srv"}.items():
            view += ["--bind", str(self.folder / name), place]
        return [*view, "--ro-bind", sys.prefix, "/opt/mathllm", "--cap-add", "ALL", *command]

    def act(self, name, commands):
        """What commands print that this account says in a terminal."""
        become = ["setpriv", f"--reuid={name}", f"--regid={name}", "--init-groups", "--reset-env"]
        script = f"cd\nset -e\n{commands.replace('sudo ', '')}"
        command = self.view(*become, "bash", "--login", "-c", script)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{name}: {commands}\n{done.stdout}{done.stderr}"
        return done.stdout

    def home(self, name):
        """The home of an account, as root sees it from outside."""
        return self.folder / "home" / name


@pytest.fixture(scope="module")
def machine():
    """The machine with its accounts; eve is one more learner like ada."""
    with tempfile.TemporaryDirectory(prefix="mathllm-") as folder:
        machine = Machine(folder)
        learner = next(line for line in ACCOUNTS.splitlines() if line.endswith(" ada"))
        machine.act("root", ACCOUNTS + re.sub("ada$", "eve", learner))
        yield machine


@pytest.fixture(scope="module")
def hub(machine):
    """The address of the hub with the settings of the chapter; only the way to log in and the ports are others."""
    with contextlib.ExitStack() as free:  # ports that nothing listens on
        sockets = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        port, api, proxy = (each.getsockname()[1] for each in sockets)
    more = f"""
c.JupyterHub.authenticator_class = "shared-password"
c.SharedPasswordAuthenticator.user_password = "{PASSWORD}"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {api}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy}"
c.ConfigurableHTTPProxy.command = "{Path(PROXY).resolve()}"
c.Spawner.start_timeout = c.Spawner.http_timeout = 600
"""
    settings, log = machine.folder / "srv/jupyterhub/jupyterhub_config.py", machine.folder / "log"
    settings.write_text(SETTINGS + more, encoding="utf-8")
    command = machine.view("sh", "-c", START.replace("sudo", "exec"))
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            while not is_up(f"http://127.0.0.1:{port}/hub/api"):
                assert server.poll() is None, log.read_text()
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.kill()


@pytest.fixture(scope="module")
def windows(browser, hub):
    """{name: page} for each account, in a window of its own, logged in."""
    with window(browser, hub) as teacher, window(browser, hub) as ada, window(browser, hub) as eve:
        pages = {"teacher": teacher, "ada": ada, "eve": eve}
        for name, page in pages.items():
            page.goto(f"{hub}/hub/login")
            page.locator("#username_input").fill(name)
            page.locator("#password_input").fill(PASSWORD)
            page.locator("#login_submit").click()
            page.wait_for_url(f"{hub}/user/{name}/lab**")
        yield pages


def test_the_teacher_makes_a_course_and_releases(machine, windows):
    machine.act("teacher", COURSE)
    patience = "".join(f"c.Limits.{name} = {seconds}\n" for name, seconds in PATIENCE.items())
    with (machine.home("teacher") / "course/nbgrader_config.py").open("a", encoding="utf-8") as settings:
        settings.write(patience)
    page = windows["teacher"]
    page.get_by_role("menuitem", name="File", exact=True).click()
    with page.expect_popup() as opened:
        page.get_by_role("menuitem", name="Hub Control Panel").click()
    opened.value.wait_for_load_state("networkidle")  # before its scripts have come, the page ignores clicks
    opened.value.locator("#stop").click()
    opened.value.locator("#start", has_text="Start My Server").click()
    opened.value.wait_for_url("**/user/teacher/lab**")
    opened.value.close()


def test_a_learner_fetches_works_and_hands_in(machine, windows, hub):
    page, address = windows["ada"], f"{hub}/user/ada"
    assignments(page, address).get_by_text("Fetch", exact=True).click()
    page.locator("#assignments").get_by_text("Submit", exact=True).wait_for()
    where, _ = numbers(machine.home("ada") / NAME / f"{NAME}.ipynb")
    _, solutions = numbers(machine.home("teacher") / "course" / "source" / NAME / f"{NAME}.ipynb")
    open_notebook(page, address, f"{NAME}/{NAME}.ipynb")
    run(page, 1).get_by_text("your numbers are drawn for: ada").wait_for()
    for answer in (NORM, OWN):
        run(page, where[f"{answer}-answer"], solutions[f"{answer}-answer"])
        run(page, where[answer]).locator(".mathllm-pass").wait_for()
    cell(page, where[TEXT]).dblclick()
    run(page, where[TEXT], PROOF).locator("strong").wait_for()
    page.keyboard.press("ControlOrMeta+s")
    page.locator(CHANGED).wait_for(state="detached")
    assignments(page, address).get_by_text("Submit", exact=True).click()
    page.locator("#assignments").get_by_text("Fetch Feedback", exact=True).wait_for()


def test_what_a_kernel_prints_is_not_on_a_port(machine):
    files = [*machine.home("ada").glob(".local/share/jupyter/runtime/kernel-*.json")]
    assert {json.loads(file.read_text())["transport"] for file in files} == {"ipc"}


def test_the_teacher_collects_and_grades(machine):
    machine.act("teacher", f"cd course\n{GRADE}")
    course = machine.home("teacher") / "course"
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    collected = nbformat.read(course / "submitted" / "ada" / NAME / f"{NAME}.ipynb", 4)
    assert PROOF in [cell.source for cell in collected.cells]


def test_the_teacher_reads_the_text_in_formgrader(machine, windows, hub):
    page = windows["teacher"]
    page.goto(f"{hub}/user/teacher/formgrader/gradebook/{NAME}/{NAME}")
    page.locator("tbody tr", has_text="Submission #1").locator("a").first.click()
    score = page.locator(f"[id='{TEXT}']")
    score.wait_for()
    assert page.get_by_text("On a line the outer two are 2 apart").is_visible()
    for field, written in ((score, str(BY_HAND)), (page.locator(f"[id='{TEXT}-comment']"), REMARK)):
        with page.expect_response(lambda response: response.request.method == "PUT") as saved:
            field.fill(written)
            field.press("Tab")
        assert saved.value.ok
    machine.act("teacher", f"cd course\n{FEEDBACK}")


def test_the_learner_sees_points_and_remark_in_the_feedback(windows, hub):
    page = windows["ada"]
    assignments(page, f"{hub}/user/ada").get_by_text("Fetch Feedback", exact=True).click()
    page.locator("#assignments").get_by_text("(view feedback)").click()
    page.get_by_role("listitem").get_by_text(f"{NAME}.html").dblclick()
    feedback = page.frame_locator(".jp-HTMLViewer iframe").locator("body")
    feedback.get_by_text(REMARK).wait_for()
    points = item("01.vectors.norm").points + item("01.vectors.own_length").points + BY_HAND
    assert f"{NAME}: {points:.1f} of " in feedback.inner_text()


def test_another_learner_reads_neither_the_work_nor_its_feedback(machine, windows, hub):
    page = windows["eve"]
    assignments(page, f"{hub}/user/eve").get_by_text("Fetch", exact=True).wait_for()
    assert page.locator("#assignments").get_by_text("feedback").count() == 0
    assert json.loads(machine.act("eve", f"python - <<'END'\n{ATTACKS}\nEND")) == []
    assert page.request.get(f"{hub}/user/eve/api/contents").ok
    for place in (f"ada/files/{NAME}/{NAME}.ipynb", f"ada/api/contents/{NAME}", "teacher/formgrader/gradebook"):
        assert page.request.get(f"{hub}/user/{place}").status == 403, place
