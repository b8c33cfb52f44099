"""The settings of the plugin: the table ``[plugins.power]``, one module for each table below it."""
