# SPDX-License-Identifier: Apache-2.0
# cmake -DPROGRAM=<generate> -DDATA=<tests/data> -DFOLDER=<for files> -DSENTENCEPIECE=<bool> -P test.cmake: small models write
# what transformers writes with them, draw by seed, go on when their cache is full; what is no model gets a sentence.

cmake_minimum_required(VERSION 3.24)

# Runs the program; `output` is what it writes, `errors` what it says.
macro(generate)
  execute_process(COMMAND "${PROGRAM}" ${ARGN}
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE errors)
endmacro()
macro(generate_well)
  generate(${ARGN})
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "generate ${ARGN} ended with ${result}\n${output}${errors}")
  endif()
endmacro()
macro(expect what found expected)
  if(NOT "${found}" STREQUAL "${expected}")
    message(FATAL_ERROR "${what}: ${found}\nexpected: ${expected}")
  endif()
endmacro()
macro(refuse sentence)
  generate(${ARGN})
  if(result EQUAL 0 OR NOT errors MATCHES "generate: .*${sentence}")
    message(FATAL_ERROR "without '${sentence}', ended with ${result}:\n${output}${errors}")
  endif()
endmacro()

set(models gpt2)
if(SENTENCEPIECE)
  list(APPEND models llama)
endif()
set(prompt "Hello world, the cat")
foreach(model IN LISTS models)
  set(weights "${DATA}/generate/${model}")
  file(STRINGS "${weights}/expected.txt" expected)
  list(JOIN expected " " expected)
  foreach(likeliest IN ITEMS "--temperature;0" "--top-k;1" "--top-p;0")
    generate_well("${weights}" --prompt "${prompt}" --length 40 ${likeliest} --numbers)
    string(STRIP "${output}" numbers)
    expect("${model} ${likeliest}" "${numbers}" "${expected}")
    if(NOT errors MATCHES "tiny_${model}: [0-9]+ parameters.*written: 40, [0-9.]+ tokens/s.*[0-9]+ MB resident")
      message(FATAL_ERROR "no report:\n${errors}")
    endif()
  endforeach()

  generate_well("${weights}" --prompt "${prompt}" --length 20)
  if(NOT output MATCHES "^${prompt}." )
    message(FATAL_ERROR "${model} does not begin with the prompt: ${output}")
  endif()
  set(first "${output}")
  generate_well("${weights}" --prompt "${prompt}" --length 20)
  expect("${model}: the same seed" "${output}" "${first}")
  generate_well("${weights}" --prompt "${prompt}" --length 20 --seed 1)
  if(output STREQUAL first)
    message(FATAL_ERROR "${model}: another seed writes the same: ${output}")
  endif()
endforeach()

# More than the 64 places of its cache.
set(weights "${DATA}/generate/gpt2")
generate_well("${weights}" --prompt "${prompt}" --length 150 --temperature 0 --numbers)
string(REGEX MATCHALL "[0-9]+ " numbers "${output}")
list(LENGTH numbers count)
expect("tokens of prompt and text" "${count}" 156)

# Llama 3's kind of tokenizer has 379 tokens.
set(own "${FOLDER}/generate_test")
file(REMOVE_RECURSE "${own}")
file(COPY "${DATA}/bpe/llama3.json" DESTINATION "${own}")
file(RENAME "${own}/llama3.json" "${own}/tokenizer.json")
refuse("the tokenizer has 379 tokens, and the model knows 377" "${weights}" --tokenizer "${own}")

file(READ "${weights}/config.json" config)
refuse("config.json" "${own}")
string(REPLACE "\"n_embd\": 16" "\"n_embd\": 32" other "${config}")
file(WRITE "${own}/config.json" "${other}")
refuse("no decoder that has a name; tiny_gpt2 is most like it, but it has hidden 32 instead of 16" "${own}")
file(WRITE "${own}/config.json" "${config}")
refuse("has neither model.safetensors nor" "${own}" --tokenizer "${weights}")
file(WRITE "${own}/config.json" [[{"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 32,
  "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256,
  "rms_norm_eps": 1e-5, "rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
  "high_freq_factor": 4, "original_max_position_embeddings": 8192}}]])
refuse("is a llama_3_1_8b, and this program was built without: cmake -DXLA_EXAMPLE_DECODERS=.*llama_3_1_8b" "${own}")
