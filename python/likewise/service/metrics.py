"""Metrics of a service, in base units, with labels of low cardinality."""

import sys
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from likewise import _native

if TYPE_CHECKING:
    from collections.abc import Iterable

    from likewise.service.collections.service import Service

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_DOCUMENTS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

# Gauges of an index on servers, each with the fact it shows.
SHARED_GAUGES = {
    "documents": "num_documents",
    "log_operations": "log_operations",
    "log_limit_operations": "log_limit_operations",
    "unconfirmed_operations": "num_unconfirmed",
    "reported_losses": "num_losses",
    "untold_losses": "num_untold_losses",
    "requests_repeated": "num_requests_repeated",
    "operations_helped": "num_operations_helped",
    "partitions_repaired": "num_partitions_repaired",
    "candidates_per_document": "candidates_per_document",
    "planned_candidates_per_document": "planned_candidates_per_document",
}


class Metrics:
    """Metrics of one service, in a separate registry."""

    def __init__(self, service: "Service") -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        self.requests = Counter(
            "likewise_http_requests", "Answered requests.", ["route", "method", "code"], registry=own
        )
        self.seconds = Histogram(
            "likewise_http_request_duration_seconds", "Request latency.", ["route"], buckets=_SECONDS, registry=own
        )
        self.work = Histogram(
            "likewise_check_duration_seconds",
            "Index time per batch of one or more requests.",
            ["op"],
            buckets=_SECONDS,
            registry=own,
        )
        self.commit = Histogram(
            "likewise_commit_duration_seconds",
            "Time per addition or removal, including sync.",
            buckets=_SECONDS,
            registry=own,
        )
        self.joined = Histogram(
            "likewise_batch_documents",
            "Documents per batch.",
            ["op"],
            buckets=_DOCUMENTS,
            registry=own,
        )
        self.verdicts = Counter("likewise_verdicts", "Verdicts returned.", ["verdict"], registry=own)
        self.truncated = Counter("likewise_query_truncated", "Truncated responses.", registry=own)
        self.rejected = Counter("likewise_rejected", "Rejected requests.", ["reason"], registry=own)
        self.active = Gauge("likewise_http_requests_active", "Requests in progress.", registry=own)
        self.body_bytes = Gauge("likewise_http_body_bytes", "Request body bytes in memory.", registry=own)
        build = Gauge("likewise_build_info", "Versions.", ["version", "python"], registry=own)
        build.labels(_native.__version__, "{}.{}.{}".format(*sys.version_info[:3])).set(1)
        self._counters: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self.registry.register(_Sizes(service))

    def count_request(self, route: str, method: str, code: int, seconds: float) -> None:
        """Count an answered request. Caches the labeled metrics, since it is called for each request."""
        key = (route, method, code)
        found = self._counters.get(key)
        if found is None:
            found = self._counters[key] = (self.requests.labels(route, method, code), self.seconds.labels(route))
        found[0].inc()
        found[1].observe(seconds)


class _Sizes(Collector):
    """Gauges of the collections, computed when the metrics are read."""

    def __init__(self, service: "Service") -> None:
        self._service = service

    def describe(self) -> "Iterable[Metric]":
        return []

    def collect(self) -> "Iterable[Metric]":
        names = {
            "documents": "Documents held.",
            "segments": "Search table segments.",
            "tail_documents": "Documents not yet in a segment.",
            "index_size_bytes": "Size of database and segments in bytes.",
            "segments_rebuilt": "Missing or damaged segments rebuilt since the index was opened.",
            "poisoned": "Whether writes are disabled after a failed write.",
            "unreachable": "Whether the servers of the index cannot be used.",
            "log_operations": "Operations in the log of the index on servers.",
            "log_limit_operations": "Operations at which additions wait for the partitions.",
            "unconfirmed_operations": "Operations whose effects are not confirmed in all partitions.",
            "reported_losses": "Operations that failovers lost, the last 1,024.",
            "untold_losses": "Lost documents and removals of this process that no request was answered with yet.",
            "requests_repeated": "Requests that this process sent to servers again.",
            "operations_helped": "Operations of other clients that this process completed.",
            "partitions_repaired": "Partitions whose lost writes this process restored.",
            "candidates_per_document": "Mean number of entries that this process read for a document.",
            "planned_candidates_per_document": "The same by the model of the tables at the expected size.",
        }
        found = {
            name: GaugeMetricFamily(f"likewise_{name}", about, labels=["collection"]) for name, about in names.items()
        }
        for collection in list(self._service.collections.values()):
            for name, value in collection.sizes().items():
                found[name].add_metric([collection.name], value)
        return list(found.values())
