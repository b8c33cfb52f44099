"""Grafana dashboards, made from the metrics that the code exports. ``python -m deploy.monitoring``.

They lie in the chart, ``deploy/helm/temper/files/dashboards``, and are committed there.
"""
