"""A copy of the files that the powercap of a machine with RAPL has."""

MICRO = 1_000_000
RANGE_UJ = 262_143_328_850


def put(path, text):
    """Write a file at once, as the kernel does: an agent may read it at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(f"{text}\n")
    partial.replace(path)


class RaplTree:
    """The tree of a machine with *packages*, below a root of sysfs. In watts and joules."""

    def __init__(self, sys_root, packages=2, max_watts=205):
        self.powercap = sys_root / "class/powercap"
        self.devices = sys_root / "devices/virtual/powercap"
        self.powercap.mkdir(parents=True)
        for number in range(packages):
            self.zone(f"intel-rapl:{number}", f"package-{number}")
            self.limits(number, limit_watts=150, max_watts=max_watts)
            self.zone(f"intel-rapl:{number}:0", "dram")

    def at(self, zone, file):
        """Return a file of a zone, whose directory is below that of its parent."""
        kind, *numbers = zone.split(":")
        path = self.devices / kind
        for count in range(len(numbers)):
            path /= ":".join((kind, *numbers[: count + 1]))
        return path / file

    def zone(self, zone, name, joules=0, range_uj=RANGE_UJ):
        put(self.at(zone, "name"), name)
        put(self.at(zone, "max_energy_range_uj"), range_uj)
        put(self.at(zone, "energy_uj"), joules * MICRO)
        (self.powercap / zone).symlink_to(self.at(zone, "name").parent)

    def limits(self, number, limit_watts, max_watts):
        zone = f"intel-rapl:{number}"
        put(self.at(zone, "constraint_0_name"), "long_term")
        put(self.at(zone, "constraint_0_max_power_uw"), max_watts * MICRO)
        put(self.limit(number), limit_watts * MICRO)

    def limit(self, number):
        return self.at(f"intel-rapl:{number}", "constraint_0_power_limit_uw")

    def use(self, joules, zone="intel-rapl:0"):
        """Add energy to a counter, which begins again at its end."""
        path = self.at(zone, "energy_uj")
        put(path, (int(path.read_text()) + joules * MICRO) % RANGE_UJ)

    def limit_watts(self, number=0):
        text = ""
        while not text:  # an agent that writes has emptied the file first
            text = self.limit(number).read_text()
        return int(text) / MICRO
