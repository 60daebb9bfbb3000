"""Where data comes from: a name of the catalogue, or a file."""

from prer.data.catalogue import RECOMMENDED, recommended
from prer.data.files import Arrays, find, load

__all__ = ["RECOMMENDED", "Arrays", "find", "load", "recommended"]
