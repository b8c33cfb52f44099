"""Panels of the fleet's dashboard about the overcommit webhook and the placement service."""

from deploy.monitoring.panels import Panel, Query, Unit, areas, lines
from deploy.monitoring.wording import quantiles, rate


def overcommit() -> tuple[Panel, ...]:
    """Show the webhook's admissions and certificates."""
    return (
        areas(
            "Admissions by outcome",
            Query(rate("temper_overcommit_admissions_total", "outcome"), "{{outcome}}"),
            unit=Unit.PER_SECOND,
        ),
        lines(
            "CPU requests lowered in an hour by",
            Query("sum(increase(temper_overcommit_freed_millicores_total{@}[1h])) / 1000", "CPUs"),
            unit=Unit.CPUS,
        ),
        lines(
            "Time of an admission",
            *quantiles("temper_overcommit_admission_seconds"),
            unit=Unit.SECONDS,
        ),
        lines(
            "Certificates are valid for",
            Query(
                "min(temper_overcommit_certificate_expiry_timestamp_seconds{@}) - time()",
                "certificate",
            ),
            Query(
                "min(temper_overcommit_authority_expiry_timestamp_seconds{@}) - time()",
                "authority",
            ),
            unit=Unit.SECONDS,
            width=12,
        ),
        lines(
            "New certificates, and failed checks",
            Query("sum(increase(temper_overcommit_certificates_taken_up_total{@}[1h]))", "new"),
            Query(
                "sum(increase(temper_overcommit_certificate_check_failures_total{@}[1h]))",
                "failed",
            ),
            unit=Unit.PER_HOUR,
            width=12,
        ),
    )


def placement() -> tuple[Panel, ...]:
    """Show the scheduler's requests and the service's data."""
    return (
        areas(
            "Requests of the scheduler",
            Query(rate("temper_placement_requests_total", "outcome"), "{{outcome}}"),
            unit=Unit.PER_SECOND,
        ),
        lines(
            "Time of an answer",
            *quantiles("temper_placement_request_seconds"),
            unit=Unit.SECONDS,
        ),
        areas(
            "Nodes scored, by rule",
            Query(rate("temper_placement_scores_total", "rule"), "{{rule}}"),
            unit=Unit.PER_SECOND,
        ),
        lines(
            "Known",
            Query("max(temper_placement_nodes{@})", "nodes"),
            Query("max(temper_placement_pods{@})", "pods"),
            Query("max(temper_placement_unreadable_pods_total{@})", "unreadable"),
            width=12,
        ),
        lines(
            "Watches that are up, and lists",
            Query("sum by (resource) (temper_placement_watch_up{@})", "up: {{resource}}"),
            Query(
                "sum by (resource) (temper_placement_watch_lists_total{@})", "listed: {{resource}}"
            ),
            width=12,
        ),
    )
