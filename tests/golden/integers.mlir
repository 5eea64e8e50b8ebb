module @f0 {
func.func public @main(%a0: tensor<3xi32>) -> (tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) {
%0 = stablehlo.constant dense<3> : tensor<i32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<3xi32>
%2 = stablehlo.divide %a0, %1 : tensor<3xi32>
%3 = stablehlo.sign %a0 : tensor<3xi32>
%4 = stablehlo.constant dense<3> : tensor<i32>
%5 = stablehlo.sign %4 : tensor<i32>
%6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<i32>) -> tensor<3xi32>
%7 = stablehlo.compare NE, %3, %6, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%8 = stablehlo.constant dense<3> : tensor<i32>
%9 = stablehlo.broadcast_in_dim %8, dims = [] : (tensor<i32>) -> tensor<3xi32>
%10 = stablehlo.remainder %a0, %9 : tensor<3xi32>
%11 = stablehlo.constant dense<0> : tensor<i32>
%12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<i32>) -> tensor<3xi32>
%13 = stablehlo.compare NE, %10, %12, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%14 = stablehlo.and %7, %13 : tensor<3xi1>
%15 = stablehlo.constant dense<1> : tensor<i32>
%16 = stablehlo.broadcast_in_dim %15, dims = [] : (tensor<i32>) -> tensor<3xi32>
%17 = stablehlo.subtract %2, %16 : tensor<3xi32>
%18 = stablehlo.select %14, %17, %2 : tensor<3xi1>, tensor<3xi32>
%19 = stablehlo.constant dense<5> : tensor<i32>
%20 = stablehlo.constant dense<0> : tensor<i32>
%21 = stablehlo.compare EQ, %19, %20, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%22 = stablehlo.constant dense<5> : tensor<i32>
%23 = stablehlo.constant dense<1> : tensor<i32>
%24 = stablehlo.select %21, %23, %22 : tensor<i1>, tensor<i32>
%25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<i32>) -> tensor<3xi32>
%26 = stablehlo.remainder %a0, %25 : tensor<3xi32>
%27 = stablehlo.constant dense<0> : tensor<i32>
%28 = stablehlo.broadcast_in_dim %27, dims = [] : (tensor<i32>) -> tensor<3xi32>
%29 = stablehlo.compare NE, %26, %28, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%30 = stablehlo.constant dense<0> : tensor<i32>
%31 = stablehlo.broadcast_in_dim %30, dims = [] : (tensor<i32>) -> tensor<3xi32>
%32 = stablehlo.compare LT, %26, %31, SIGNED : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi1>
%33 = stablehlo.constant dense<0> : tensor<i32>
%34 = stablehlo.compare LT, %24, %33, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
%35 = stablehlo.broadcast_in_dim %34, dims = [] : (tensor<i1>) -> tensor<3xi1>
%36 = stablehlo.compare NE, %32, %35, UNSIGNED : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
%37 = stablehlo.and %29, %36 : tensor<3xi1>
%38 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<i32>) -> tensor<3xi32>
%39 = stablehlo.add %26, %38 : tensor<3xi32>
%40 = stablehlo.select %37, %39, %26 : tensor<3xi1>, tensor<3xi32>
%41 = stablehlo.constant dense<2> : tensor<i32>
%42 = stablehlo.broadcast_in_dim %41, dims = [] : (tensor<i32>) -> tensor<3xi32>
%43 = stablehlo.shift_left %a0, %42 : tensor<3xi32>
%44 = stablehlo.constant dense<7> : tensor<i32>
%45 = stablehlo.broadcast_in_dim %44, dims = [] : (tensor<i32>) -> tensor<3xi32>
%46 = stablehlo.and %a0, %45 : tensor<3xi32>
return %18, %40, %43, %46 : tensor<3xi32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>
}
}
