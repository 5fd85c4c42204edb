"""Instances as pods: manifests with cards and MIG slices as resources, applied with ``kubectl``.

Slices are asked for as NVIDIA's device plugin offers them in its mixed strategy
(``nvidia.com/mig-1g.10gb``), whole cards as ``nvidia.com/gpu``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from va100.cloud.drivers.base import Assignment, Finished, Isolation, Phase, Reading, Status
from va100.cloud.models import Shape
from va100.errors import Conflict, SetupError
from va100.units import GIB

_LIMIT_S: Final = 60
_PHASES: Final[Mapping[str, Phase]] = {
    "Pending": Phase.STARTING,
    "Running": Phase.RUNNING,
    "Succeeded": Phase.EXITED,
    "Failed": Phase.EXITED,
    "Unknown": Phase.STARTING,
}


def resource_name(shape: Shape) -> str:
    """The extended resource that a shape is."""
    return f"nvidia.com/mig-{shape.profile}" if shape.is_slice else "nvidia.com/gpu"


def manifests(assignment: Assignment, namespace: str) -> list[dict[str, Any]]:
    """The objects of one start of an instance: its disk, and its pod."""
    labels = {
        "app.kubernetes.io/managed-by": "va100-cloud",
        "va100/instance": assignment.instance,
        "va100/tenant": assignment.tenant,
        "va100/generation": str(assignment.generation),
    }
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": assignment.instance, "namespace": namespace, "labels": labels},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": f"{max(1, assignment.disk_bytes // GIB)}Gi"}},
        },
    }
    count = 1 if assignment.shape.is_slice else assignment.shape.cards
    container: dict[str, Any] = {
        "name": "main",
        "image": assignment.image,
        "command": list(assignment.command),
        "workingDir": "/workspace",
        "env": [{"name": k, "value": v} for k, v in sorted(assignment.environment.items())],
        "ports": [{"containerPort": port} for port in assignment.ports],
        "resources": {"limits": {resource_name(assignment.shape): count}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "disk", "mountPath": "/workspace"}],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _name(assignment), "namespace": namespace, "labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 5,
            "nodeSelector": {"kubernetes.io/hostname": assignment.place.node},
            "containers": [container],
            "volumes": [
                {"name": "disk", "persistentVolumeClaim": {"claimName": assignment.instance}}
            ],
        },
    }
    return [disk, pod]


class KubernetesDriver:
    """Runs instances as pods of one namespace.

    Parameters
    ----------
    variables : mapping of str to str
        With which ``kubectl`` is run: ``PATH``, ``KUBECONFIG``.
    """

    def __init__(self, namespace: str, variables: Mapping[str, str]) -> None:
        self.namespace = namespace
        self.variables = dict(variables)
        if shutil.which("kubectl", path=self.variables.get("PATH")) is None:
            raise SetupError("kubectl is not on the path", remedy="install kubectl")

    def isolation(self) -> Isolation:
        """Containers, as the cluster's admission allows them."""
        return Isolation(isolates=True, how="containers of a cluster")

    def launch(self, assignment: Assignment) -> None:
        """Apply the instance's objects; those that are there stay as they are."""
        if not assignment.image:
            raise SetupError(
                "the template names no container image", remedy="add `image` to the template"
            )
        listed = {
            "apiVersion": "v1",
            "kind": "List",
            "items": manifests(assignment, self.namespace),
        }
        self._ask(["apply", "--filename=-"], json.dumps(listed))

    def status(self, instance: str, generation: int) -> Status:
        """How a pod stands."""
        text = self._ask(
            ["get", "pod", f"{instance}-{generation}", "--ignore-not-found", "--output=json"]
        )
        if not text.strip():
            return Status(phase=Phase.ABSENT)
        found = json.loads(text)["status"]
        phase = _PHASES.get(found.get("phase", "Pending"), Phase.STARTING)
        states = [one.get("state", {}) for one in found.get("containerStatuses", [])]
        codes = [state["terminated"]["exitCode"] for state in states if "terminated" in state]
        return Status(phase=phase, exit_code=codes[0] if codes else None)

    def stop(self, instance: str, *, grace_s: float) -> None:
        """Delete an instance's pods; its disk stays."""
        self._ask(["delete", "pod", f"--selector=va100/instance={instance}", "--wait=false",
                   "--ignore-not-found", f"--grace-period={int(grace_s)}"])  # fmt: skip

    def pause(self, instance: str) -> None:
        """Refuse: pods cannot be paused."""
        raise Conflict(f"{instance}: a pod cannot be paused, so it cannot lend its GPU")

    def resume(self, instance: str) -> None:
        """Nothing: pods are never paused."""

    def remove(self, instance: str) -> None:
        """Delete an instance's pods and disk."""
        self._ask(["delete", "pod,persistentvolumeclaim", f"--selector=va100/instance={instance}",
                   "--wait=false", "--ignore-not-found"])  # fmt: skip

    def execute(self, instance: str, command: Sequence[str], *, timeout_s: float) -> Finished:
        """Run a command in the pod."""
        words = ["kubectl", f"--namespace={self.namespace}", "exec", self._pod(instance), "--",
                 *command]  # fmt: skip
        try:
            done = subprocess.run(  # noqa: S603 -- what the tenant rents this for
                words, env=self.variables, capture_output=True, check=False, timeout=timeout_s,
                stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired as error:
            late = f"\nended after {timeout_s:g} s\n".encode()
            return Finished(exit_code=124, output=error.stdout or b"",
                            errors=(error.stderr or b"") + late)  # fmt: skip
        return Finished(exit_code=done.returncode, output=done.stdout, errors=done.stderr)

    def _pod(self, instance: str) -> str:
        names = self._ask(["get", "pods", f"--selector=va100/instance={instance}", "--output=name",
                           "--field-selector=status.phase=Running"]).split()  # fmt: skip
        if not names:
            raise Conflict("nothing runs in it")
        return names[-1]

    def logs(self, instance: str, *, offset: int, limit: int) -> tuple[bytes, int]:
        """What the pod printed."""
        try:
            text = self._ask(["logs", self._pod(instance)]).encode()
        except Conflict:
            return b"", offset
        piece = text[offset : offset + limit]
        return piece, offset + len(piece)

    def reading(self, instance: str) -> Reading | None:
        """Nothing: the cluster's own monitoring has the figures."""
        del instance
        return None

    def gpu_work_ns(self, instance: str) -> int | None:
        """Not known here."""
        del instance
        return None

    def open_terminal(self, instance: str, *, columns: int, rows: int) -> str:
        """Refuse: use ``kubectl exec -it`` on the cluster."""
        del columns, rows
        raise Conflict(f"terminals: `kubectl exec -it {self._pod(instance)} -- bash`")

    def terminal_output(
        self, instance: str, terminal: str, *, offset: int, limit: int
    ) -> tuple[bytes, int, bool]:
        """Refuse: there are no terminals."""
        del terminal, offset, limit
        raise Conflict(f"{instance} has no terminals")

    def terminal_input(self, instance: str, terminal: str, keys: bytes) -> None:
        """Refuse: there are no terminals."""
        del terminal, keys
        raise Conflict(f"{instance} has no terminals")

    def port_address(self, instance: str, port: int) -> Path | None:
        """None: pods are reached by the cluster's services."""
        del instance, port
        return None

    def _ask(self, words: Sequence[str], given: str = "") -> str:
        try:
            done = subprocess.run(  # noqa: S603 -- kubectl, each argument a word
                ["kubectl", f"--namespace={self.namespace}", *words],  # noqa: S607
                env=self.variables, capture_output=True, text=True, check=False, input=given,
                timeout=_LIMIT_S,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SetupError(f"kubectl: {error}", remedy="see that the cluster answers") from error
        if done.returncode:
            why = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
            raise SetupError(f"kubectl {words[0]}: {why[0]}", remedy="see the cluster's events")
        return done.stdout


def _name(assignment: Assignment) -> str:
    return f"{assignment.instance}-{assignment.generation}"
