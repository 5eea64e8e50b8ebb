module @f0 {
func.func public @main() -> (tensor<5xi32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>) {
%0 = stablehlo.iota dim = 0 : tensor<5xi32>
%1 = stablehlo.constant dense<1.0> : tensor<f32>
%2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
%3 = stablehlo.iota dim = 1 : tensor<2x2xi32>
%4 = stablehlo.iota dim = 0 : tensor<2x2xi32>
%5 = stablehlo.subtract %3, %4 : tensor<2x2xi32>
%6 = stablehlo.constant dense<0> : tensor<i32>
%7 = stablehlo.broadcast_in_dim %6, dims = [] : (tensor<i32>) -> tensor<2x2xi32>
%8 = stablehlo.compare EQ, %5, %7, SIGNED : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
%9 = stablehlo.constant dense<1.0> : tensor<2x2xf32>
%10 = stablehlo.constant dense<0.0> : tensor<2x2xf32>
%11 = stablehlo.select %8, %9, %10 : tensor<2x2xi1>, tensor<2x2xf32>
%12 = stablehlo.constant dense<0.10000000149011612> : tensor<f32>
return %0, %2, %11, %12 : tensor<5xi32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<f32>
}
}
