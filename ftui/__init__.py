"""ftui: from a written hypothesis to a fine-tune that can be defended, inside a rental that ends at a fixed hour.

The rooms, in the order in which they may import one another (`pyproject.toml` holds the contracts):

    plan      what was decided            record    what happened          machine   the host
    data      files to encoded examples   train     one training process   engine    supervisor and queue
    verdict   paired statistics           report    the record in words    ui        the app
"""

__version__ = "0.1.0"
