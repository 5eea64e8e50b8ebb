module @f0 {
func.func public @main(%a0: tensor<5x3xf32>, %a1: tensor<4xi32>) -> (tensor<4x3xf32>, tensor<3x3xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<i32>) -> tensor<4xi32>
%2 = stablehlo.compare LT, %a1, %1, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
%3 = stablehlo.constant dense<5> : tensor<i32>
%4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<i32>) -> tensor<4xi32>
%5 = stablehlo.add %a1, %4 : tensor<4xi32>
%6 = stablehlo.select %2, %5, %a1 : tensor<4xi1>, tensor<4xi32>
%7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
%8 = "stablehlo.gather"(%a0, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<4x1xi32>) -> tensor<4x3xf32>
%9 = stablehlo.slice %a0 [1:4:1, 0:3:1] : (tensor<5x3xf32>) -> tensor<3x3xf32>
%10 = stablehlo.reverse %9, dims = [1] : tensor<3x3xf32>
%11 = stablehlo.slice %a0 [0:5:1, 0:1:1] : (tensor<5x3xf32>) -> tensor<5x1xf32>
%12 = stablehlo.reshape %11 : (tensor<5x1xf32>) -> tensor<5xf32>
return %8, %10, %12 : tensor<4x3xf32>, tensor<3x3xf32>, tensor<5xf32>
}
}
