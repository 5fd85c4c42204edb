"""Pods: manifests against the published schemas, and the calls that are made of ``kubectl``."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.unit.cloud.fleets import SXM, card, mig
from va100.cloud.drivers.base import Assignment, Phase
from va100.cloud.drivers.kubernetes import KubernetesDriver, manifests, resource_name
from va100.cloud.models import Place
from va100.errors import Conflict, SetupError

STUB = f"""#!{sys.executable}
import json, os, sys
state = os.environ["STATE"]
words = sys.argv[1:]
open(state + ".calls", "a").write(json.dumps(words) + "\\n")
verb = words[1]
if verb == "apply":
    open(state, "w").write(sys.stdin.read())
elif verb == "get" and words[2] == "pod" and os.path.exists(state):
    print(open(state + ".status").read() if os.path.exists(state + ".status") else
          json.dumps({{"status": {{"phase": "Running"}}}}))
elif verb == "get" and words[2] == "pods" and os.path.exists(state):
    print("pod/i-1-1")
elif verb == "exec":
    print(" ".join(words[words.index("--") + 1:]))
elif verb == "logs":
    print("hello")
elif verb == "delete":
    os.path.exists(state) and os.remove(state)
elif verb == "refuse":
    sys.exit("forbidden")
"""


def assignment(shape, **more):
    return Assignment(
        instance="i-1", generation=1, tenant="t-1", name="n", shape=shape,
        place=Place("node-1", (0,)), command=("sleep", "1"), image="x/y:1",
        environment={"A": "1"}, ports=(8000,), disk_bytes=20 << 30, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "name", "count"),
    [(card(), "nvidia.com/gpu", 1), (card(4), "nvidia.com/gpu", 4),
     (mig("1g.10gb"), "nvidia.com/mig-1g.10gb", 1)],
)  # fmt: skip
def test_what_is_asked_for(shape, name, count):
    assert resource_name(shape) == name
    _, pod = manifests(assignment(shape), "lab")
    container = pod["spec"]["containers"][0]
    assert container["resources"]["limits"] == {name: count}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize("shape", [card(2), mig("3g.40gb")])
def test_manifests_keep_the_published_schemas(shape):
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    for one in manifests(assignment(shape), "lab"):
        validate.validate(one, validate.latest_version(), strict=True)
    broken = manifests(assignment(shape), "lab")[1]
    broken["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(Exception, match="imagee"):
        validate.validate(broken, validate.latest_version(), strict=True)


@pytest.fixture
def driver(tmp_path):
    stub = tmp_path / "kubectl"
    stub.write_text(STUB)
    stub.chmod(0o755)
    state = str(tmp_path / "state")
    return KubernetesDriver("lab", {"PATH": f"{tmp_path}:{os.defpath}", "STATE": state})


def calls(driver):
    with open(driver.variables["STATE"] + ".calls", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def test_the_life_of_a_pod(driver):
    assert driver.status("i-1", 1).phase is Phase.ABSENT
    driver.launch(assignment(mig("1g.10gb")))
    with open(driver.variables["STATE"], encoding="utf-8") as file:
        applied = json.load(file)
    assert [one["kind"] for one in applied["items"]] == ["PersistentVolumeClaim", "Pod"]
    assert driver.status("i-1", 1).phase is Phase.RUNNING
    done = driver.execute("i-1", ["echo", "; rm -rf /", "$X"], timeout_s=10)
    assert done.output == b"echo ; rm -rf / $X\n"
    assert driver.logs("i-1", offset=2, limit=3) == (b"llo", 5)
    states = [{"state": {"terminated": {"exitCode": 3}}}]
    ended = {"status": {"phase": "Failed", "containerStatuses": states}}
    with open(driver.variables["STATE"] + ".status", "w", encoding="utf-8") as file:
        json.dump(ended, file)
    assert driver.status("i-1", 1).exit_code == 3
    driver.stop("i-1", grace_s=5)
    assert driver.status("i-1", 1).phase is Phase.ABSENT
    with pytest.raises(Conflict):
        driver.pause("i-1")
    assert all(call[0] == "--namespace=lab" for call in calls(driver))


def test_a_template_without_an_image_is_refused(driver):
    plain = Assignment(instance="i", generation=1, tenant="t", name="n", shape=card(),
                       place=Place("n", (0,)), command=("true",))  # fmt: skip
    with pytest.raises(SetupError, match="no container image"):
        driver.launch(plain)


def test_kubectl_is_needed(tmp_path):
    with pytest.raises(SetupError, match="kubectl"):
        KubernetesDriver("lab", {"PATH": str(tmp_path)})


def test_shapes_are_of_the_model():
    assert str(mig("1g.10gb")) == f"{SXM}:1g.10gb"
