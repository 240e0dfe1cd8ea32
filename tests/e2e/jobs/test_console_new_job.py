"""New job: the wizard by mouse and by keyboard, what it says before anything is submitted, and that the job file and
the command line it shows ask for the same."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.e2e.conftest import Visit
from tests.e2e.console import BUILT, NOT_BUILT
from tests.integration.api import api_server
from tests.integration.cli_harness import Person
from tests.integration.jobs import preset_data
from tests.integration.waiting import wait_until
from tests.servers.corral_server import CorralServer
from tests.servers.torch_python import torch_python

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not BUILT.exists(), reason=NOT_BUILT)]


@pytest.fixture(scope="module")
def server() -> Iterator[CorralServer]:
    """Eight GPUs; packages and a quota for ann, none for bob, and dora has no permissions."""
    with api_server("--virtual-gpus", "8xA100-80G", users=("ann", "bob", "dora")) as running:
        with running.http() as http:
            packages = (
                {"name": "one-gpu", "gpus": 1, "cpus": 1, "description": "For a try"},
                {"name": "four-gpus", "gpus": 4},
                {"name": "too-large", "gpus": 6},
                {"name": "for-benches", "gpus": 1, "kinds": ["workbench"]},
            )
            for package in packages:
                http.post("/packages", json=package).raise_for_status()
            http.put("/users/ann/quota", json={"training": {"gpus": 4}}).raise_for_status()
            http.post("/permission-groups", json={"name": "readers", "functions": []}).raise_for_status()
            http.patch("/users/dora", json={"permission_group": "readers"}).raise_for_status()
        yield running


def dry_run(page: Page) -> Locator:
    return page.get_by_test_id("plan")


def step(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def forward(page: Page) -> None:
    page.get_by_role("button", name="Next").click()


def job_of(server: CorralServer, user: str, name: str) -> dict[str, Any]:
    with server.http(user) as http:
        answer = http.get(f"/jobs/{name}")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found


# ------------------------------------------------------------------------------------------------ the whole way


def test_a_training_goes_from_the_first_step_to_its_end(visit: Visit, server: CorralServer) -> None:
    page = visit("ann").open("/jobs/new", "New job")
    page.get_by_label("Name").fill("by-mouse")
    forward(page)
    expect(page.get_by_role("radio", name="The node's own environment")).to_be_checked()
    forward(page)
    expect(page.get_by_text("Without mounts the job sees only its own directory")).to_be_visible()
    forward(page)
    offered = page.get_by_role("radiogroup", name="Packages")
    expect(offered.get_by_role("radio")).to_have_count(2)
    expect(offered).to_contain_text("4 would start now")
    expect(offered).to_contain_text("starts at once")
    others = page.get_by_text(re.compile("Not available now"))
    expect(others).to_contain_text("(2)")
    expect(page.get_by_role("listitem").filter(has_text="too-large")).to_contain_text("quota")
    expect(page.get_by_role("listitem").filter(has_text="for-benches")).to_contain_text("It is offered to: workbench")
    offered.get_by_role("radio", name="one-gpu").click()
    expect(dry_run(page)).to_contain_text("Would start now")
    forward(page)
    page.get_by_label("Command").fill('echo "the answer is $ANSWER" && sleep 1')
    expect(page.get_by_text("Runs in a shell")).to_be_visible()
    page.get_by_role("button", name="Add a variable").click()
    page.get_by_label("Name of variable 1").fill("ANSWER")
    page.get_by_label("Value of variable 1").fill("42")
    page.get_by_label("Time limit").fill("10m")
    forward(page)
    expect(page).to_have_url(re.compile("step=review"))
    expect(page.get_by_role("region", name="Size")).to_contain_text("one-gpu")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    expect(page.get_by_text("by-mouse is submitted")).to_be_visible()
    wait_until(lambda: job_of(server, "ann", "by-mouse")["state"] == "completed", "the job is completed")
    job = job_of(server, "ann", "by-mouse")
    assert job["package"] == "one-gpu"
    assert job["time_limit_seconds"] == 600
    with server.http("ann") as http:
        assert "the answer is 42" in http.get(f"/jobs/{job['id']}/logs").text
    assert page.evaluate("sessionStorage.getItem('corral.newjob')") is None, "a draft that was handed in is forgotten"


def test_the_keyboard_alone_is_enough(visit: Visit, server: CorralServer) -> None:
    page = visit("bob").open("/jobs/new", "New job")
    keys = page.keyboard
    page.get_by_role("radio", name="Training").focus()
    for _ in ("Distributed", "Preset", "Workbench", "Name"):
        keys.press("Tab")
    expect(page.get_by_label("Name")).to_be_focused()
    keys.type("by-keys")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="What does it run in?")).to_be_focused()
    keys.press("Tab")
    expect(page.get_by_role("radio", name="The node's own environment")).to_be_focused()
    page.get_by_role("button", name="Next").focus()
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Which data does it need?")).to_be_focused()
    page.get_by_role("button", name="Next").focus()
    keys.press("Enter")
    expect(page.get_by_role("heading", name="How much does it need?")).to_be_focused()
    keys.press("Tab")
    keys.press("ArrowRight")
    gpus = page.get_by_label("GPUs", exact=True)
    expect(gpus).to_be_visible()
    gpus.focus()
    keys.press("Control+a")
    keys.type("0.5")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="What does it run, and how?")).to_be_focused()
    keys.press("Tab")
    expect(page.get_by_label("Command")).to_be_focused()
    keys.type("true")
    keys.press("Tab")
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Is this right?")).to_be_focused()
    page.get_by_role("button", name="Submit").focus()
    keys.press("Enter")
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    wait_until(lambda: job_of(server, "bob", "by-keys")["state"] == "completed", "the job is completed")
    assert job_of(server, "bob", "by-keys")["gpus"] == 0.5


# ------------------------------------------------------------------------------------------------ wrong input


def test_errors_are_shown_at_each_step_while_the_user_types(visit: Visit, server: CorralServer) -> None:
    with server.http("ann") as http:
        http.post("/jobs", json={"name": "taken-name", "command": ["true"], "hold": True}).raise_for_status()
    page = visit("ann").open("/jobs/new", "New job")
    name = page.get_by_label("Name")
    name.fill("x y")
    expect(page.get_by_text("4 to 63 letters, digits, - and _ (this has 3)")).to_be_visible()
    forward(page)
    expect(name).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("1 field needs your attention")
    name.fill("taken-name")
    expect(page.get_by_text("You have a job with this name").first).to_be_visible()
    name.fill("good-name")
    forward(page)
    page.get_by_role("radio", name="An image by its address").click()
    page.get_by_role("textbox", name="Address").fill("Not An Image")
    expect(page.get_by_text("This is not an address")).to_be_visible()
    page.get_by_role("radio", name="The node's own environment").click()
    forward(page)
    expect(page.get_by_role("heading", name="Which data does it need?")).to_be_visible()
    forward(page)
    forward(page)
    expect(page.get_by_role("alert")).to_contain_text("Choose a package")
    page.get_by_text("Custom size", exact=True).click()
    page.get_by_label("GPUs", exact=True).fill("6")
    message = "You ask for 6, but your quota for training leaves 4 of 4"
    expect(page.get_by_role("alert")).to_contain_text(message)
    expect(dry_run(page)).to_contain_text("Would be refused")
    expect(dry_run(page)).to_contain_text("quota")
    page.get_by_label("GPUs", exact=True).fill("1.5")
    expect(page.get_by_text("0, a share below 1 with at most three decimals").first).to_be_visible()
    page.get_by_label("Memory").fill("lots")
    expect(page.get_by_text("Not a size").first).to_be_visible()
    page.get_by_label("Memory").fill("1GiB")
    page.get_by_label("GPUs", exact=True).fill("2")
    forward(page)
    forward(page)
    expect(page.get_by_label("Command")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text("There is nothing to run")
    page.get_by_label("Command").fill("python train.py")
    expect(page.get_by_text("Runs python directly, with 1 argument.")).to_be_visible()
    page.get_by_label("Time limit").fill("soon")
    expect(page.get_by_text("Not a duration: write 90m, 2h or 1d12h").first).to_be_visible()
    page.get_by_role("button", name="Add a variable").click()
    page.get_by_label("Name of variable 1").fill("1-BAD")
    expect(page.get_by_text("Letters, digits and _, not beginning with a digit").first).to_be_visible()
    # Straight to the end: handing in leads back to what is wrong.
    step(page, "Review")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile("step=tools"))
    expect(page.locator("[aria-invalid=true]").first).to_be_focused()
    page.get_by_label("Time limit").fill("90m")
    page.get_by_label("Name of variable 1").fill("GOOD")
    expect(page.get_by_role("alert")).to_be_hidden()


def test_errors_of_the_server_are_shown_beside_the_field(visit: Visit) -> None:
    page = visit("bob").open("/jobs/new?step=size", "New job")
    page.get_by_text("Custom size", exact=True).click()
    step(page, "Program")
    page.get_by_label("Command").fill("true")
    page.get_by_role("combobox", name="After these jobs").fill("no-such-job")
    page.keyboard.press("Enter")
    expect(dry_run(page)).to_contain_text("no-such-job")
    expect(page.locator(".mantine-TagsInput-error")).to_contain_text("no-such-job")


def test_the_dry_run_follows_the_size_and_the_cluster(visit: Visit, server: CorralServer) -> None:
    page = visit("bob").open("/jobs/new?step=size", "New job")
    page.get_by_text("Custom size", exact=True).click()
    gpus = page.get_by_label("GPUs", exact=True)
    gpus.fill("8")
    expect(dry_run(page)).to_contain_text("Would start now")
    expect(dry_run(page)).to_contain_text("on ")
    gpus.fill("9")
    expect(dry_run(page)).not_to_contain_text("Would start now")
    expect(dry_run(page)).to_contain_text(re.compile("9 GPUs|9 GPU"))
    gpus.fill("8")
    expect(dry_run(page)).to_contain_text("Would start now")
    with server.http() as http:
        body = {"name": "in-the-way", "command": ["sleep", "60"], "gpus": 2, "time": "10m"}
        job = http.post("/jobs", json=body).raise_for_status().json()
        # Without anything being touched here.
        expect(dry_run(page)).to_contain_text("Would wait", timeout=15_000)
        expect(dry_run(page)).to_contain_text("until about")
        http.post(f"/jobs/{job['id']}/stop").raise_for_status()
    expect(dry_run(page)).to_contain_text("Would start now", timeout=15_000)


# ------------------------------------------------------------------------------------------------ other interfaces


@pytest.fixture
def bob(server: CorralServer, tmp_path: Path) -> Person:
    return Person(server=server.url, home=tmp_path, env={"CORRAL_TOKEN": server.token("bob")})


def shown(page: Page, tab: str, label: str) -> str:
    page.get_by_role("tab", name=tab).click()
    return page.locator(f"pre[aria-label='{label}'], code[aria-label='{label}']").inner_text()


def in_a_shell(person: Person, line: str) -> Any:
    """The line as a user pastes it, with a `corral` that is this one."""
    corral = f'corral() {{ {shlex.quote(sys.executable)} -m corral.cli.main -o json "$@"; }}\n'
    done = subprocess.run(
        ["/bin/sh", "-c", corral + line],
        env=person.environment(),
        cwd=person.home,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_job_file_and_the_command_line_ask_for_the_same(visit: Visit, server: CorralServer, bob: Person) -> None:
    page = visit("bob").open("/jobs/new", "New job")
    page.get_by_role("radio", name="Distributed").click()
    page.get_by_label("Name").fill("two-ways")
    step(page, "Size")
    page.get_by_text("Custom size", exact=True).click()
    page.get_by_label("Nodes").fill("1")
    expect(page.get_by_text("A whole number from 2")).to_be_visible()
    step(page, "Kind")
    page.get_by_role("radio", name="Training").click()
    page.get_by_label("Description").fill("It's for\nthe paper")
    step(page, "Size")
    page.get_by_label("GPUs", exact=True).fill("3")
    page.get_by_label("CPUs").fill("1.5")
    page.get_by_label("Memory").fill("2GiB")
    step(page, "Program")
    page.get_by_label("Command").fill("""printf '%s\\n' "it's $GREETING: no" | tee "a b.txt" """)
    page.get_by_role("button", name="Add a variable").click()
    page.get_by_label("Name of variable 1").fill("GREETING")
    page.get_by_label("Value of variable 1").fill("""say "hi" # it's: {fine} 08""")
    page.get_by_label("Working directory").fill("/tmp")
    page.get_by_label("Time limit").fill("1h30m")
    page.get_by_label("Priority").fill("7")
    page.get_by_label("Retries").fill("2")
    page.get_by_label("Checkpoint interval").fill("5m")
    page.get_by_label("Grace time").fill("45s")
    page.get_by_role("switch", name="Only create it").click()
    expect(dry_run(page)).to_contain_text("Would start now")
    step(page, "Review")
    yaml = shown(page, "As YAML", "Copy the YAML")
    line = shown(page, "As CLI command", "Copy the command")
    (bob.home / "job.yaml").write_text(yaml)
    by_file = bob.read("submit", "-f", "job.yaml", "--dry-run")
    by_line = in_a_shell(bob, line.replace("corral submit", "corral submit --dry-run"))
    assert by_file["outcome"] == by_line["outcome"] == "start"
    assert by_file["nodes"] == by_line["nodes"]
    # Handed in three ways, it is three times the same job.
    made = [bob.read("submit", "-f", "job.yaml"), in_a_shell(bob, line.replace("two-ways", "two-ways-line"))]
    page.get_by_role("button", name="Back").click()
    step(page, "Kind")
    page.get_by_label("Name").fill("two-ways-page")
    step(page, "Review")
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    made.append(job_of(server, "bob", "two-ways-page"))
    asked = (
        *("kind", "command", "env", "gpus", "cpus", "memory_bytes", "nodes", "workdir", "time_limit_seconds"),
        *("priority", "max_retries", "checkpoint_interval_seconds", "grace_seconds", "state", "queue", "description"),
    )
    alike = [{field: job[field] for field in asked} for job in made]
    assert alike[0] == alike[1] == alike[2]
    assert alike[0]["env"] == {"GREETING": """say "hi" # it's: {fine} 08"""}
    assert alike[0]["gpus"] == 3
    assert alike[0]["description"] == "It's for\nthe paper"


def test_a_preset_is_run_and_shown_for_other_interfaces(visit: Visit, server: CorralServer, bob: Person) -> None:
    page = visit("bob").open("/jobs/new?preset=classification&step=tools", "New job")
    expect(page.get_by_text("Classifies small images")).to_be_visible()
    page.get_by_label("epochs").fill("0")
    expect(page.get_by_text("From 1 to 100000").first).to_be_visible()
    page.get_by_label("epochs").fill("2")
    page.get_by_label("images", exact=True).fill("50")
    step(page, "Kind")
    expect(page.get_by_role("radio", name="Preset")).to_be_checked()
    page.get_by_label("Name").fill("small-model")
    step(page, "Size")
    page.get_by_text("Custom size", exact=True).click()
    page.get_by_label("GPUs", exact=True).fill("0")
    expect(dry_run(page)).to_contain_text("Would start now")
    step(page, "Review")
    line = shown(page, "As CLI command", "Copy the command")
    assert line.startswith("corral preset run classification")
    made = in_a_shell(bob, line.replace("small-model", "small-model-line"))
    (bob.home / "job.yaml").write_text(shown(page, "As YAML", "Copy the YAML"))
    assert bob.read("submit", "-f", "job.yaml", "--dry-run")["outcome"] == "start"
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    wait_until(lambda: job_of(server, "bob", "small-model")["state"] == "completed", "it has learned", 60)
    job = job_of(server, "bob", "small-model")
    assert job["parameters"]["epochs"] == "2"
    for field in ("command", "gpus", "cpus", "memory_bytes", "parameters", "time_limit_seconds"):
        assert job[field] == made[field]


# ------------------------------------------------------------------------------------------------ drafts


def test_a_clone_is_filled_in_without_the_name(visit: Visit, server: CorralServer) -> None:
    with server.http("bob") as http:
        body = {
            "name": "original",
            "command": ["python", "train.py", "--note", "two words"],
            "gpus": 2,
            "memory": "3GiB",
            "env": {"EPOCHS": "9"},
            "time": "2h",
            "hold": True,
        }
        job = http.post("/jobs", json=body).raise_for_status().json()
    page = visit("bob").open(f"/jobs/new?clone={job['id']}", "New job")
    expect(page.get_by_text(f"A copy of {job['id']}")).to_be_visible()
    expect(page.get_by_label("Name")).to_have_value("")
    page.get_by_label("Name").fill("another")
    step(page, "Size")
    expect(page.get_by_label("GPUs", exact=True)).to_have_value("2")
    expect(page.get_by_label("Memory")).to_have_value("3GiB")
    step(page, "Program")
    expect(page.get_by_label("Command")).to_have_value("python train.py --note 'two words'")
    expect(page.get_by_label("Value of variable 1")).to_have_value("9")
    expect(page.get_by_label("Time limit")).to_have_value("2h")
    page.get_by_label("Time limit").fill("3h")
    page.reload(wait_until="domcontentloaded")
    expect(page.get_by_label("Time limit")).to_have_value("3h")
    step(page, "Review")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs/j-\d+$"))
    made = job_of(server, "bob", "another")
    assert made["command"] == body["command"]
    assert made["time_limit_seconds"] == 3 * 3600


def test_a_draft_outlives_a_reload_but_its_secrets_do_not(visit: Visit) -> None:
    page = visit("bob").open("/jobs/new?kind=training&step=tools", "New job")
    page.get_by_label("Command").fill("python keep.py")
    for at, (name, value) in enumerate((("API_TOKEN", "hush-hush"), ("EPOCHS", "5")), start=1):
        page.get_by_role("button", name="Add a variable").click()
        page.get_by_label(f"Name of variable {at}").fill(name)
        page.get_by_label(f"Value of variable {at}").fill(value)
    page.reload(wait_until="domcontentloaded")
    expect(page.get_by_label("Command")).to_have_value("python keep.py")
    expect(page.get_by_label("Value of variable 2")).to_have_value("5")
    expect(page.get_by_label("Name of variable 1")).to_have_value("API_TOKEN")
    expect(page.get_by_label("Value of variable 1")).to_have_value("")
    stored = page.evaluate("JSON.stringify({...sessionStorage}) + JSON.stringify({...localStorage})")
    assert "hush-hush" not in stored
    page.get_by_role("button", name="Start over").click()
    step(page, "Program")
    expect(page.get_by_label("Command")).to_have_value("")


def test_a_user_without_permissions_sees_the_reason(visit: Visit) -> None:
    page = visit("dora").open("/jobs/new", "New job")
    expect(page.get_by_text("You may not create jobs")).to_be_visible()
    expect(page.get_by_text("readers")).to_be_visible()
    expect(page.get_by_role("button", name="Next")).to_have_count(0)


def test_an_array_becomes_many_jobs(visit: Visit, server: CorralServer) -> None:
    page = visit("bob").open("/jobs/new?kind=training&step=tools", "New job")
    page.get_by_label("Command").fill("true")
    page.get_by_label("Array").fill("3-1")
    expect(page.get_by_text("Not indexes")).to_be_visible()
    page.get_by_label("Array").fill("0-2")
    expect(page.get_by_text("For one of the 3 jobs.")).to_be_visible()
    step(page, "Size")
    page.get_by_text("Custom size", exact=True).click()
    page.get_by_label("GPUs", exact=True).fill("0")
    step(page, "Kind")
    page.get_by_label("Name").fill("sweep")
    step(page, "Review")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_text("3 jobs are submitted")).to_be_visible()
    assert job_of(server, "bob", "sweep-2")["array"]["size"] == 3


def test_retries_and_a_packed_array_are_asked_for(visit: Visit, server: CorralServer) -> None:
    page = visit("bob").open("/jobs/new?step=size", "New job")
    page.get_by_text("Custom size").click()
    step(page, "Program")
    page.get_by_label("Command").fill("exit 3")
    page.get_by_label("Retries").fill("2")
    page.get_by_label("Retry on").fill("exit,oom")
    packed = page.get_by_label("Run the items one after another")
    expect(packed).to_be_disabled()
    page.get_by_label("Array").fill("1-4%2")
    packed.check(force=True)
    step(page, "Kind")
    page.get_by_label("Name").fill("packed-up")
    step(page, "Review")
    page.get_by_role("button", name="Submit").click()
    expect(page).to_have_url(re.compile(r"/jobs"))
    with server.http("bob") as http:
        found = wait_for_jobs(http, "packed-up")
    assert len(found) == 2, "two jobs run the four items"
    assert {job["max_retries"] for job in found} == {2}
    assert {tuple(job["retry_on"]) for job in found} == {("exit", "oom")}


def wait_for_jobs(http: httpx.Client, array: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []

    def there() -> bool:
        found[:] = http.get("/jobs", params={"array": array}).json()["items"]
        return bool(found)

    wait_until(there, f"the jobs of {array} are submitted")
    return found


def test_a_registered_data_set_is_picked_with_its_classes_and_the_report_is_shown(
    visit: Visit, server: CorralServer, tmp_path: Path
) -> None:
    for directory in (tmp_path, *tmp_path.parents[:3]):
        # Without workers beside each other the last one is /tmp, where every account may write.
        if directory != Path(tempfile.gettempdir()):
            directory.chmod(0o755)
    data = preset_data.csv_table(tmp_path / "points")
    body = {"kind": "dataset", "name": "points", "source": str(data), "format": "csv", "description": "Two halves"}
    with server.http() as http:
        http.post("/preset-assets", json=body).raise_for_status()
    page = visit("bob").open("/presets", "Presets")
    page.get_by_role("button", name="Quick run of classifier").click()
    drawer = page.get_by_role("dialog", name=re.compile("Train a classifier"))
    drawer.get_by_label("dataset").fill("points")
    page.get_by_role("option", name="points").click()
    classes = drawer.get_by_role("list", name="Classes of points")
    expect(classes.get_by_role("listitem")).to_have_text(["above", "below"])
    expect(drawer).to_contain_text("csv · Two halves")
    with server.http("bob") as http:
        asked = {"dataset": "points", "mode": "scratch", "allow_cpu": "true", "precision": "fp32", "epochs": 2}
        path = f"{Path(torch_python()).parent}:/usr/bin:/bin"
        over = {"env": {"PATH": path, "OMP_NUM_THREADS": "1"}, "cpus": 1, "memory": "1GiB"}
        answer = http.post("/presets/classifier/run", json={"name": "halves", "parameters": asked, "overrides": over})
        answer.raise_for_status()
    wait_until(lambda: job_of(server, "bob", "halves")["state"] == "completed", "the training ends", seconds=180)
    page = visit("bob").open(f"/jobs/{answer.json()['id']}?tab=report", "halves")
    expect(page.get_by_role("heading", name="Classification: points")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("accuracy: from"))).to_be_visible()
    matrix = page.get_by_role("table", name="Confusion matrix")
    expect(matrix.get_by_role("row")).to_have_count(3)
    expect(matrix).to_contain_text("above")
