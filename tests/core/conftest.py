from hypothesis import HealthCheck, settings

# A shared machine decides how long an example takes; neither that nor a seed may fail a build.
settings.register_profile(
    "temper",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("temper")
