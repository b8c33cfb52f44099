"""The label of the objects that the operator makes."""

MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "temper-power"
