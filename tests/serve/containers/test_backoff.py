"""When a process is started again."""

from fxflow.serve.containers.backoff import Backoff


def test_grows_to_a_limit_and_is_forgiven() -> None:
    backoff, seconds = Backoff(), []
    for _ in range(2000):
        backoff = backoff.after(ran=1.0)
        seconds.append(backoff.seconds)
    assert seconds == sorted(seconds) and seconds[-1] == 30.0
    assert seconds[:4] == [0.0, 0.1, 0.2, 0.4]
    assert backoff.after(ran=11.0).seconds == 0.0
