"""Where the gateway listens: a port nobody has, and the URL that leads there."""

import socket


class CannotListen(Exception):
    """The address cannot be listened on; the message says why."""


def free_port(host: str, port: int) -> int:
    """Return the port to listen on: the given one if nobody has it, any free one for 0.

    The server shares its port with whoever else wants to (SO_REUSEPORT), so asking first is the
    only way to notice another gateway.

    Raises:
        CannotListen: the port is taken, not ours to take, or the host is not this machine.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise CannotListen(f"cannot listen on {host}:{port}: {error.strerror}") from error


def url_of(host: str, port: int) -> str:
    """Return the address as a URL a client on this machine can use."""
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, host)  # noqa: S104 - not bound here
    return f"http://[{name}]:{port}" if ":" in name and "[" not in name else f"http://{name}:{port}"


def numeric(host: str, port: int) -> str:
    """Return the numeric address of a host name."""
    return str(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][4][0])
