"""Whether an address is this machine's own."""

import ipaddress


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address is this machine's loopback."""
    if not host:
        return False
    name = host.rstrip(".").lower()
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
