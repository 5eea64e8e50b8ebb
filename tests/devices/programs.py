"""Small StableHLO programs."""

ADD = """module @add { func.func @main(%a: tensor<16xf32>) -> tensor<16xf32> {
  %b = stablehlo.add %a, %a : tensor<16xf32>
  return %b : tensor<16xf32> } }"""

DONATE = """module @donate {
  func.func @main(%a: tensor<16xf32> {ATTRIBUTE}) -> tensor<16xf32> {
  %b = stablehlo.add %a, %a : tensor<16xf32>
  return %b : tensor<16xf32> } }"""


def identity(shape: str) -> str:
    """Returns a program that copies its argument, a `tensor<...>`."""
    return f"""module @identity {{ func.func @main(%a: {shape}) -> {shape} {{
      %b = stablehlo.optimization_barrier %a : {shape}
      return %b : {shape} }} }}"""
