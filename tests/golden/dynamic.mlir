module @f0 {
func.func public @main(%a0: tensor<5xf32>, %a1: tensor<i32>) -> (tensor<2xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<5> : tensor<i32>
%1 = stablehlo.add %a1, %0 : tensor<i32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%3 = stablehlo.compare LT, %a1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%4 = stablehlo.select %3, %1, %a1 : tensor<i1>, tensor<i32>
%5 = stablehlo.dynamic_slice %a0, %4, sizes = [2] : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
%6 = stablehlo.slice %a0 [0:1:1] : (tensor<5xf32>) -> tensor<1xf32>
%7 = stablehlo.constant dense<5> : tensor<i32>
%8 = stablehlo.add %a1, %7 : tensor<i32>
%9 = stablehlo.constant dense<0> : tensor<i32>
%10 = stablehlo.compare LT, %a1, %9, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%11 = stablehlo.select %10, %8, %a1 : tensor<i1>, tensor<i32>
%12 = stablehlo.dynamic_update_slice %a0, %6, %11 : (tensor<5xf32>, tensor<1xf32>, tensor<i32>) -> tensor<5xf32>
return %5, %12 : tensor<2xf32>, tensor<5xf32>
}
}
