/* Compiles the C front end with this package. */
#include "../c/fxflow.c"
