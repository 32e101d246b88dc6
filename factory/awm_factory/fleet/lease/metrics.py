"""Figures for Prometheus: counters that the service keeps, and gauges that are read from it when asked."""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from awm_factory.client.wire import EndReason
from awm_factory.fleet.lease.status import Status

_WAITS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._granted = Counter("awm_fleet_leases_granted", "Leases given out", ["env_id"], registry=self.registry)
        self._ended = Counter("awm_fleet_leases_ended", "Leases that ended, by why", ["env_id", "reason"], registry=self.registry)
        self._lost = Counter(
            "awm_fleet_containers_lost", "Containers that died or stopped answering", ["env_id"], registry=self.registry
        )
        self._seconds = Histogram(
            "awm_fleet_lease_seconds", "From a request for a lease to the lease", buckets=_WAITS, registry=self.registry
        )
        self._requests = Histogram(
            "awm_fleet_request_seconds",
            "Requests passed on to containers",
            ["plane", "status"],
            buckets=_WAITS,
            registry=self.registry,
        )

    def granted(self, env_id: str, seconds: float) -> None:
        self._granted.labels(env_id).inc()
        self._seconds.observe(seconds)

    def ended(self, env_id: str, reason: EndReason) -> None:
        self._ended.labels(env_id, reason).inc()

    def lost(self, env_id: str) -> None:
        self._lost.labels(env_id).inc()

    def passed(self, plane: str, status: int, seconds: float) -> None:
        self._requests.labels(plane, f"{status // 100}xx").observe(seconds)

    def watch(self, status: Callable[[], Status]) -> None:
        self.registry.register(_Gauges(status))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, status: Callable[[], Status]) -> None:
        self._status = status

    def collect(self) -> Iterator[GaugeMetricFamily]:
        leases = GaugeMetricFamily("awm_fleet_leases", "Leases held", labels=["env_id"])
        waiting = GaugeMetricFamily("awm_fleet_waiting", "Requests that wait for an episode", labels=["env_id"])
        containers = GaugeMetricFamily("awm_fleet_containers", "Containers that answer", labels=["env_id"])
        episodes = GaugeMetricFamily("awm_fleet_episodes", "Episodes, twins included", labels=["env_id"])
        capacity = GaugeMetricFamily("awm_fleet_capacity", "Episodes that fit", labels=["env_id"])
        for one in self._status().scenarios:
            leases.add_metric([one.env_id], one.leases)
            waiting.add_metric([one.env_id], one.waiting)
            containers.add_metric([one.env_id], len(one.containers))
            episodes.add_metric([one.env_id], sum(each.episodes for each in one.containers))
            capacity.add_metric([one.env_id], sum(each.capacity for each in one.containers))
        yield from (leases, waiting, containers, episodes, capacity)
