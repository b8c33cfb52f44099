"""Deployment of Temper: the image, the chart, and the generator of its dashboards."""
