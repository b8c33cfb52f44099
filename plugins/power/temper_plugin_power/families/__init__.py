"""The metric families of the plugin's servers, one module for each."""
