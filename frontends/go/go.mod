module fxflow

go 1.18
