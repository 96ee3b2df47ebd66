"""A figure beside its limit."""
import collections


class Result(collections.namedtuple("Result", "what value limit unit", defaults=("",))):
    """A figure and the most that it may be; without a limit, it is only told."""

    def met(self):
        return self.limit is None or self.value <= self.limit

    def text(self):
        return self.format(self.value)

    def limit_text(self):
        return "" if self.limit is None else f"<= {self.format(self.limit)}"

    def format(self, value):
        if self.unit == "%":
            return f"{100 * value:.2f} %"
        if self.unit == "s":
            return f"{value:.3f} s"
        if self.unit == "MB":
            return f"{value / 1e6:.1f} MB"
        return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"
