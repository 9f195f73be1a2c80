from .scale import ScaleBuilder
from .never import NeverBuilder

ALL_OPS = {builder.NAME: builder for builder in (ScaleBuilder, NeverBuilder)}
