module @f0 {
func.func public @main(%a0: tensor<5x3xf32>, %a1: tensor<4xi32>) -> (tensor<4x3xf32>, tensor<3x3xf32>, tensor<5xf32>) {
%0 = stablehlo.constant dense<0> : tensor<4xi32>
%1 = stablehlo.compare LT, %a1, %0, SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
%2 = stablehlo.constant dense<5> : tensor<4xi32>
%3 = stablehlo.add %a1, %2 : tensor<4xi32>
%4 = stablehlo.select %1, %3, %a1 : tensor<4xi1>, tensor<4xi32>
%5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<4xi32>) -> tensor<4x1xi32>
%6 = "stablehlo.gather"(%a0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [], start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<5x3xf32>, tensor<4x1xi32>) -> tensor<4x3xf32>
%7 = stablehlo.slice %a0 [1:4:1, 0:3:1] : (tensor<5x3xf32>) -> tensor<3x3xf32>
%8 = stablehlo.reverse %7, dims = [1] : tensor<3x3xf32>
%9 = stablehlo.slice %a0 [0:5:1, 0:1:1] : (tensor<5x3xf32>) -> tensor<5x1xf32>
%10 = stablehlo.reshape %9 : (tensor<5x1xf32>) -> tensor<5xf32>
return %6, %8, %10 : tensor<4x3xf32>, tensor<3x3xf32>, tensor<5xf32>
}
}
