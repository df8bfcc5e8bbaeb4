"""One writer per journal: two are refused, a dead one blocks nobody, readers are never asked."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import InputError
from penstock.history.journal import Header, Journal, read
from penstock.history.lock import only_writer
from penstock.spark.autoscaler import Autoscaler
from tests.fakes.shell import Shell
from tests.fakes.spark import FakeSession, look, without_spark
from tests.fakes.waiting import until

HOLD = """
import sys
from pathlib import Path
from penstock.history.lock import only_writer
with only_writer(Path(sys.argv[1]), "app-7"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(journal: Path) -> subprocess.Popen[str]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(journal)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None and child.stdout.readline() == "held\n"
    return child


def test_two_processes_are_refused_and_a_dead_one_blocks_nobody(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with holder(path) as child:
        with pytest.raises(InputError) as error, only_writer(path, "app-8"):
            pass
        assert str(error.value) == (
            f"process {child.pid} writes {path} already for app-7: two Autoscalers would mix their "
            "decisions in it. Give each a journal of its own, or stop the other one first"
        )
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert (tmp_path / "j.lock").exists()  # it had no time to remove it
    with only_writer(path, "app-8"):
        pass
    assert not (tmp_path / "j.lock").exists()


def test_two_in_one_process_on_different_applications_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    one, two = FakeSession([]), FakeSession([])
    with without_spark(), Autoscaler(one, journal=path):
        refused = Autoscaler(two, journal=path)
        says = (
            rf"this process, {os.getpid()}, writes .*j already for {one.sparkContext.applicationId}"
        )
        with pytest.raises(InputError, match=says):
            refused.start()
        assert (one.attached, two.attached) == (1, 0)
        with Autoscaler(two, journal=tmp_path / "other"):
            assert two.attached == 1
    with without_spark(), refused:  # nobody writes it any more
        assert two.attached == 1


def test_it_holds_through_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "j"
    session = FakeSession([look(1000.0 + i) for i in range(30)])
    small = {"journal_max_bytes": 10_000}
    with without_spark(), Autoscaler(session, journal=path, config=small):
        until("the story is over", session.over.is_set)
        assert path.with_name("j.1").exists()
        with pytest.raises(InputError, match="already"), only_writer(path, ""):
            pass


def test_penstock_run_refuses_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", sys.path[:])
    (tmp_path / "job.py").write_text("print('ran')")
    shell = Shell.at(tmp_path, monkeypatch, capsys, "run", "job.py", "--journal", "j")
    with only_writer(tmp_path / "j", "app-7"):
        done = shell()
    assert (done.code, done.out) == (2, "")
    assert f"this process, {os.getpid()}, writes j already for app-7" in done.err
    assert shell().out == "ran\n"


def test_another_spelling_of_the_same_file_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real").touch()
    (tmp_path / "link").symlink_to("real")
    with (
        only_writer(tmp_path / "real", ""),
        pytest.raises(InputError, match="already"),
        only_writer(tmp_path / "x" / ".." / "link", ""),
    ):
        pass


def test_readers_are_never_blocked(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with only_writer(path, ""), Journal(path, Header(policy="p")):
        assert read(path)[0].policy == "p"


def test_a_fork_neither_keeps_nor_ends_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "j"
    wake, sleep = os.pipe()
    with ExitStack() as stack:
        stack.enter_context(only_writer(path, ""))
        child = os.fork()
        if child == 0:
            os.close(sleep)
            stack.close()  # as the end of a with block in the child
            os.read(wake, 1)  # outlives its parent's lock
            os._exit(0)
        with pytest.raises(InputError, match="already"), only_writer(path, ""):
            pass
        assert (tmp_path / "j.lock").exists()
    with only_writer(path, ""):  # though the child still runs
        pass
    os.close(wake)
    os.close(sleep)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_one_warning_and_on(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def flock(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", flock)
    session = FakeSession([look()])
    with without_spark(), Autoscaler(session, journal=tmp_path / "j"):
        until("the story is over", session.over.is_set)
    assert len(read(tmp_path / "j")[1]) == 1
    assert caplog.text.count(f"j cannot be locked ({os.strerror(number)})") == 1
