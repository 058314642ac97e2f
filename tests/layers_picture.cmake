# SPDX-License-Identifier: Apache-2.0
# include/xla/layers.svg, the picture of the layers. cmake -DDRAW=ON -P tests/layers.cmake writes it of the lists there;
# without DRAW that script compares, so that the picture is what the test holds.

set(layer_groups  # from this number down: colour, caption
  "90=#cfe3f7=what programs include"
  "66=#d5edcf=the run time: calls, modes, plans, state"
  "50=#fbe2bd=the kernels"
  "40=#e8dbf1=the graph: constexpr, for the compiler and for run time alike")

# xla_layers_picture(<out> <number=name=text>...): from the highest layer to the lowest.
function(xla_layers_picture out)
  set(body "")
  set(y 0)
  set(fill "")
  set(groups ${layer_groups})
  foreach(row IN LISTS ARGN)
    string(REGEX MATCH "^([0-9]+)=([^=]*)=(.*)$" _ "${row}")
    set(number ${CMAKE_MATCH_1})
    set(name "${CMAKE_MATCH_2}")
    set(text "${CMAKE_MATCH_3}")
    set(first 0)
    if(groups)
      list(GET groups 0 group)
      string(REGEX MATCH "^([0-9]+)=(.*)=(.*)$" _ "${group}")
      set(first ${CMAKE_MATCH_1})
    endif()
    if(groups AND NOT number GREATER first)
      math(EXPR at "${y} + 21")
      set(fill "${CMAKE_MATCH_2}")
      string(APPEND body "<rect y=\"${y}\" width=\"760\" height=\"30\" fill=\"${fill}\" stroke=\"#444\"/>\n"
        "<text x=\"10\" y=\"${at}\" class=\"group\">${CMAKE_MATCH_3}</text>\n")
      math(EXPR y "${y} + 30")
      list(REMOVE_AT groups 0)
    endif()
    math(EXPR at "${y} + 18")
    string(APPEND body "<rect y=\"${y}\" width=\"760\" height=\"26\" fill=\"${fill}\" stroke=\"#fff\"/>\n"
      "<text x=\"24\" y=\"${at}\" class=\"name\">${name}</text><text x=\"296\" y=\"${at}\">${text}</text>\n")
    math(EXPR y "${y} + 26")
  endforeach()
  set(${out} "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 760 ${y}\" width=\"760\" height=\"${y}\" role=\"img\">
<title>The layers of include/xla: each includes itself and those below it</title>
<style>text { font: 14px sans-serif; fill: #111 } .group { font-weight: bold } .name { font-family: monospace }</style>
${body}</svg>\n" PARENT_SCOPE)
endfunction()
