module @f0 {
func.func public @main(%a0: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) {
%0 = stablehlo.constant dense<3> : tensor<3xi32>
%1 = stablehlo.divide %a0, %0 : tensor<3xi32>
%2 = stablehlo.sign %a0 : tensor<3xi32>
%3 = stablehlo.constant dense<3> : tensor<i32>
%4 = stablehlo.sign %3 : tensor<i32>
%5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<3xi32>
%6 = stablehlo.compare NE, %2, %5, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%7 = stablehlo.constant dense<3> : tensor<3xi32>
%8 = stablehlo.remainder %a0, %7 : tensor<3xi32>
%9 = stablehlo.constant dense<0> : tensor<3xi32>
%10 = stablehlo.compare NE, %8, %9, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%11 = stablehlo.and %6, %10 : tensor<3xi1>
%12 = stablehlo.constant dense<1> : tensor<3xi32>
%13 = stablehlo.subtract %1, %12 : tensor<3xi32>
%14 = stablehlo.select %11, %13, %1 : tensor<3xi1>, tensor<3xi32>
%15 = stablehlo.constant dense<5> : tensor<i32>
%16 = stablehlo.constant dense<0> : tensor<i32>
%17 = stablehlo.compare EQ, %15, %16, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%18 = stablehlo.constant dense<5> : tensor<i32>
%19 = stablehlo.constant dense<1> : tensor<i32>
%20 = stablehlo.select %17, %19, %18 : tensor<i1>, tensor<i32>
%21 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<i32>) -> tensor<3xi32>
%22 = stablehlo.remainder %a0, %21 : tensor<3xi32>
%23 = stablehlo.constant dense<0> : tensor<3xi32>
%24 = stablehlo.compare NE, %22, %23, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%25 = stablehlo.constant dense<0> : tensor<3xi32>
%26 = stablehlo.compare LT, %22, %25, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%27 = stablehlo.constant dense<0> : tensor<i32>
%28 = stablehlo.compare LT, %20, %27, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%29 = stablehlo.broadcast_in_dim %28, dims = [] : (tensor<i1>) -> tensor<3xi1>
%30 = stablehlo.compare NE, %26, %29, UNSIGNED : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
%31 = stablehlo.and %24, %30 : tensor<3xi1>
%32 = stablehlo.broadcast_in_dim %20, dims = [] : (tensor<i32>) -> tensor<3xi32>
%33 = stablehlo.add %22, %32 : tensor<3xi32>
%34 = stablehlo.select %31, %33, %22 : tensor<3xi1>, tensor<3xi32>
%35 = stablehlo.constant dense<2> : tensor<3xi32>
%36 = stablehlo.shift_left %a0, %35 : tensor<3xi32>
%37 = stablehlo.constant dense<7> : tensor<3xi32>
%38 = stablehlo.and %a0, %37 : tensor<3xi32>
return %14, %34, %36, %38 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
}
}
