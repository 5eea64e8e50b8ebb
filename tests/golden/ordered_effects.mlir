module @f0 {
func.func public @main(%a0: tensor<2xf32>) -> (tensor<2xf32>) {
%0 = stablehlo.create_token : !stablehlo.token
%1 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a0, %0) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 0 : ui64}, operand_layouts = [dense<[0]> : tensor<1xindex>, dense<[]> : tensor<0xindex>], result_layouts = [dense<[]> : tensor<0xindex>]} : (tensor<2xf32>, !stablehlo.token) -> (!stablehlo.token)
%2 = stablehlo.constant dense<1.0> : tensor<2xf32>
%3 = stablehlo.add %a0, %2 : tensor<2xf32>
%4 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%3, %1) {api_version = 4 : i32, has_side_effect = true, backend_config = {index = 1 : ui64}, operand_layouts = [dense<[0]> : tensor<1xindex>, dense<[]> : tensor<0xindex>], result_layouts = [dense<[]> : tensor<0xindex>]} : (tensor<2xf32>, !stablehlo.token) -> (!stablehlo.token)
return %a0 : tensor<2xf32>
}
}
