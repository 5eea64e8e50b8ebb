from pathlib import Path

import numpy as np
import pytest

from fxflow.distributed.messages import codec
from fxflow.distributed.messages.codec import LIMITS, Message
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.server.log import EntryLog, read
from fxflow.errors import DistributedError


def entries(count: int) -> list[Message]:
    big = np.arange(700_000, dtype=np.float32)  # several frames
    return [
        Message.of(messages.Gradient(0, i, 0), 1, i, arrays={"0": big + i})
        for i in range(count)
    ]


def numbers(path: Path) -> list[int]:
    found = []
    for entry in read(path, limits=LIMITS):
        np.testing.assert_array_equal(
            entry.arrays["0"][:3], np.arange(3) + entry.sequence
        )
        found.append(entry.sequence)
    return found


def test_written_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a" / "log"
    assert list(read(path, limits=LIMITS)) == []
    for _ in range(2):
        log = EntryLog(path)
        for entry in entries(2):
            log.append(entry, limits=LIMITS)
        log.sync()
        assert log.size == path.stat().st_size
        log.close()
    assert numbers(path) == [0, 1, 0, 1]


def test_the_log_of_another_version_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log"
    with monkeypatch.context() as patch:
        patch.setattr(codec, "VERSION", codec.VERSION + 1)
        log = EntryLog(path)
        log.append(entries(1)[0], limits=LIMITS)
        log.close()
    size = path.stat().st_size
    with pytest.raises(DistributedError, match="another version of fxflow"):
        list(read(path, limits=LIMITS))
    assert path.stat().st_size == size


@pytest.mark.parametrize("cut", [1, 5, 100, 2_799_990])
def test_an_incomplete_record_is_truncated(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    for entry in entries(2):
        log.append(entry, limits=LIMITS)
    log.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(size - cut)
    assert numbers(path) == [0]
    assert path.stat().st_size == size // 2
    log = EntryLog(path)
    log.append(entries(2)[1], limits=LIMITS)
    log.close()
    assert numbers(path) == [0, 1]


def test_reading_stops_at_a_damaged_record(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    for entry in entries(3):
        log.append(entry, limits=LIMITS)
    log.close()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert numbers(path) == [0]


def test_reading_without_repair_truncates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = EntryLog(path)
    log.append(entries(1)[0], limits=LIMITS)
    log.close()
    with path.open("r+b") as file:
        file.truncate(log.size - 1)
    assert list(read(path, limits=LIMITS, repair=False)) == []
    assert path.stat().st_size == log.size - 1
