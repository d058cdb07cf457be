"""A Ray that is not one."""

from fake_cluster import fake_ray  # noqa: F401  # a fixture
