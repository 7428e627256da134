"""What each key does to the running fleet; the second engine and the second cluster are the ones slowed and surged."""

from headrace.infra.demo.session import Session
from headrace.infra.fleet.commands import Heal, Kill, Replicas, Revive, Slow, Surge

SLOW_FACTOR = 3.0
SURGE_FACTOR = 1.5
REMOVE_EVERY_S = 3.0
SHED_FROM_RPS = 0.5
QUIT = "q"


class Controls:
    """Keys to commands. `step` goes on with the one that takes time: removing replicas until the solver sheds."""

    def __init__(self, session: Session) -> None:
        self._session = session
        names = session.options.scenario.names
        self._engines = list(names.engines)
        self._target, self._surged = names.engines[1 % len(names.engines)], names.clusters[1 % len(names.clusters)]
        self._full = {setup.spec.engine_id: setup.replicas for setup in session.options.scenario.engines}
        self._next_removal_s: float | None = None

    @property
    def help(self) -> tuple[tuple[str, str], ...]:
        """The keys and what they do."""
        return (
            (f"1-{len(self._engines)}", "kill/revive engine"),
            ("s", f"slow {self._target}"),
            ("u", f"surge {self._surged}"),
            ("r", "shrink till it sheds/give back"),
            (QUIT, "quit"),
        )

    def press(self, key: str) -> None:
        """Do what the key stands for; other keys do nothing."""
        session = self._session
        if key.isdigit() and 1 <= int(key) <= len(self._engines):
            name = self._engines[int(key) - 1]
            session.do(Kill(name) if session.simulation.engines[name].alive else Revive(name))
        elif key == "s":
            slow = session.simulation.engines[self._target].slow > 1.0
            session.do(Heal(self._target) if slow else Slow(self._target, SLOW_FACTOR))
        elif key == "u":
            surging = session.simulation.gateways[self._surged].surge > 1.0
            session.do(Surge(self._surged, 1.0 if surging else SURGE_FACTOR))
        elif key == "r":
            self._toggle_removal()

    def step(self) -> None:
        """Take one more replica away where that is under way and due; the solver's first shedding ends it."""
        session = self._session
        if self._next_removal_s is None or session.now_s < self._next_removal_s:
            return
        if session.logbook.shed_now_rps >= SHED_FROM_RPS:
            self._end_removal(f"{session.logbook.shed_now_rps:.0f} RPS are shed")
            return
        engines = session.simulation.engines
        name = max(self._engines, key=lambda each: engines[each].desired)
        if engines[name].desired == 0:
            self._end_removal("there is none left")
            return
        session.do(Replicas(name, engines[name].desired - 1))
        self._next_removal_s = session.now_s + REMOVE_EVERY_S

    def _end_removal(self, why: str) -> None:
        self._next_removal_s = None
        more = "; r gives back what was taken" if self._missing() else ""
        self._session.logbook.note(self._session.now_s, f"no replica is taken away: {why}{more}")

    def _missing(self) -> list[str]:
        engines = self._session.simulation.engines
        return [name for name in self._engines if engines[name].desired < self._full[name]]

    def _toggle_removal(self) -> None:
        missing = self._missing()
        if self._next_removal_s is None and not missing:
            self._next_removal_s = self._session.now_s
            return
        self._next_removal_s = None
        for name in missing:
            self._session.do(Replicas(name, self._full[name]))
