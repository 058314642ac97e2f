// error: xla::nn::KeyValueCache: only in a causal decoder do tokens not change those before them
#include <xla/xla.hpp>

xla::nn::KeyValueCache<xla::nn::small_decoder, 16> cache;
