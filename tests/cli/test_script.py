"""A script under ``penstock run`` ends as it does under Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.waiting import until

ROOT = Path(__file__).parents[2]


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "COLUMNS": "80"}


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment(), text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "script",
    [
        "def inner():\n    return 1 / 0\n\nprint('before')\ninner()\n",
        "try:\n    {}['a']\nexcept KeyError as e:\n    raise ValueError('b') from e\n",
        "print('before')\nif True\n    pass\n",
        "import nothing_of_that_name\n",
        "import json\njson.loads('{')\n",
        "raise EOFError('mine')\n",
        "import sys\nsys.excepthook = lambda *e: print('own hook', e[0].__name__)\n1 / 0\n",
        "import sys\nsys.exit(7)\n",
        "import sys\nsys.exit('a message')\n",
        "import sys\nsys.exit()\n",
        "print('fine')\n",
    ],
)
def test_errors_and_exit_codes_are_those_of_python(script: str, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(script)
    plain = run(tmp_path, "job.py")
    ours = run(tmp_path, "-m", "penstock", "run", "job.py")
    first, _, rest = ours.stderr.partition("\n")
    assert first.startswith("penstock: ds2 in mode advise")
    # Python names a script by its whole path, we as it was given.
    whole = str(tmp_path / "job.py")
    assert rest.replace(whole, "job.py") == plain.stderr.replace(whole, "job.py")
    assert (ours.returncode, ours.stdout) == (plain.returncode, plain.stdout)


WAITING = """
import signal, sys, threading
from pyspark.sql import SparkSession
from tests.fakes.spark import FakeSession, without_spark
session = FakeSession([])
session.sparkContext.uiWebUrl = "http://driver:4040"
SparkSession._instantiatedSession = session
with without_spark():
    try:
        while not session.attached:
            threading.Event().wait(0.05)
        print("waiting", flush=True)
        threading.Event().wait(60)
    finally:
        print("cleaned up")
"""


@pytest.mark.parametrize(
    ("number", "code", "says"),
    [(signal.SIGTERM, 143, ""), (signal.SIGINT, 130, "error: interrupted\n")],
)
def test_signals_end_it_in_order(
    number: signal.Signals, code: int, says: str, tmp_path: Path
) -> None:
    (tmp_path / "job.py").write_text(WAITING)
    with subprocess.Popen(
        [sys.executable, "-m", "penstock", "run", "job.py", "--journal", "j"],
        cwd=tmp_path, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        assert child.stdout is not None and child.stdout.readline() == "waiting\n"
        assert (tmp_path / "j.lock").exists()
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (code, "cleaned up\n")
    assert "Traceback" not in err
    assert err.count("penstock: Spark UI at http://driver:4040\n") == 1
    assert err.endswith(says)
    until("the Autoscaler was stopped", lambda: not (tmp_path / "j.lock").exists())


REMOTE = """
import sys, types
module = types.ModuleType("pyspark.sql.connect.session")
class SparkSession:
    _default_session = None
SparkSession.__module__ = module.__name__
module.SparkSession = SparkSession
sys.modules[module.__name__] = module
SparkSession._default_session = SparkSession()
import threading
threading.Event().wait(1.5)
print("went on")
"""


def test_a_client_of_spark_connect_goes_on_without_us(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(REMOTE)
    done = run(tmp_path, "-m", "penstock", "run", "job.py")
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert done.stderr.count("not attached: this is a session of Spark Connect") == 1
