"""What Temper is installed with: the image, the chart, and what its dashboards are made by."""
