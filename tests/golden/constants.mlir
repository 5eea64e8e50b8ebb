module @f0 {
func.func public @main() -> (tensor<5xi32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>) {
%0 = stablehlo.iota dim = 0 : tensor<5xi32>
%1 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%2 = stablehlo.iota dim = 1 : tensor<2x2xi32>
%3 = stablehlo.iota dim = 0 : tensor<2x2xi32>
%4 = stablehlo.subtract %2, %3 : tensor<2x2xi32>
%5 = stablehlo.constant dense<0> : tensor<2x2xi32>
%6 = stablehlo.compare EQ, %4, %5, SIGNED : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
%7 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%8 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
%9 = stablehlo.select %6, %7, %8 : tensor<2x2xi1>, tensor<2x2xf32>
%10 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
return %0, %1, %9, %10 : tensor<5xi32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>
}
}
