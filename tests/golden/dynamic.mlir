module @f0 {
func.func public @main(%a0: tensor<5xf32>, %a1: tensor<i32>) -> (tensor<2xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<5> : tensor<i32>
%1 = stablehlo.add %a1, %0 : tensor<i32>
%2 = stablehlo.constant dense<0> : tensor<i32>
%3 = stablehlo.compare LT, %a1, %2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%4 = stablehlo.select %3, %1, %a1 : tensor<i1>, tensor<i32>
%5 = stablehlo.constant dense<0> : tensor<i32>
%6 = stablehlo.constant dense<3> : tensor<i32>
%7 = stablehlo.clamp %5, %4, %6 : tensor<i32>
%8 = stablehlo.dynamic_slice %a0, %7, sizes = [2] : (tensor<5xf32>, tensor<i32>) -> tensor<2xf32>
%9 = stablehlo.slice %a0 [0:1:1] : (tensor<5xf32>) -> tensor<1xf32>
%10 = stablehlo.constant dense<5> : tensor<i32>
%11 = stablehlo.add %a1, %10 : tensor<i32>
%12 = stablehlo.constant dense<0> : tensor<i32>
%13 = stablehlo.compare LT, %a1, %12, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%14 = stablehlo.select %13, %11, %a1 : tensor<i1>, tensor<i32>
%15 = stablehlo.constant dense<0> : tensor<i32>
%16 = stablehlo.constant dense<4> : tensor<i32>
%17 = stablehlo.clamp %15, %14, %16 : tensor<i32>
%18 = stablehlo.dynamic_update_slice %a0, %9, %17 : (tensor<5xf32>, tensor<1xf32>, tensor<i32>) -> tensor<5xf32>
%19 = stablehlo.optimization_barrier %18 : tensor<5xf32>
return %8, %19 : tensor<2xf32>, tensor<5xf32>
}
}
