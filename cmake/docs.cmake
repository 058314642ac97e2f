# SPDX-License-Identifier: Apache-2.0
# One static site of all pages and of the reference that is made of the headers: cmake -P cmake/docs.cmake
#   -DBUILD=<folder>   default build/docs; the pages begin at html/index.html
#   -DMODES=<file>     what the test checks/conformance wrote; default that of a folder below build/. Next to it is what
#                      checks/conformance_plugin wrote, where there is a plugin of XLA
# Options are before -P. Fails on warnings, such as a name in a comment that does not exist.

include("${CMAKE_CURRENT_LIST_DIR}/bootstrap.cmake")
if(NOT BUILD)
  set(BUILD "${XLA_ROOT}/build/docs")
endif()
get_filename_component(BUILD "${BUILD}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
xla_need(doxygen:doxygen python3:python3)
xla_need(OPTIONAL doxygen-awesome-css)
find_program(doxygen doxygen REQUIRED)
find_program(python3 python3 REQUIRED)

file(MAKE_DIRECTORY "${BUILD}")
execute_process(COMMAND "${python3}" "${CMAKE_CURRENT_LIST_DIR}/op_table.py" "${XLA_ROOT}/include"
  OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
if(NOT MODES)
  file(GLOB all "${XLA_ROOT}/build/*/tests/conformance/modes.txt" "${XLA_ROOT}/build/tests/conformance/modes.txt")
  list(SORT all)
  list(POP_FRONT all MODES)
endif()
if(EXISTS "${MODES}")
  cmake_path(REPLACE_FILENAME MODES plugin.txt OUTPUT_VARIABLE plugin)
  if(EXISTS "${plugin}")
    file(STRINGS "${plugin}" lines)
    foreach(line IN LISTS lines)
      string(REGEX MATCH "^([^ ]+) (.*)$" _ "${line}")
      set("plugin_${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}")
    endforeach()
  else()
    message("==> without the column of XLA, which the test checks/conformance_plugin writes")
  endif()
  string(APPEND table "\n# Ops in every mode\n
A body is a function of the tests. The table counts the bodies that use an op and give the same bits in all modes, gradients included.
The last column says how far XLA's plugin is from these bits at most, by the element type of the op's first input. It is in units in the last
place: of the element, or, for an op that adds up, of the sum of the terms' magnitudes. An op without an entry ran on XLA only in programs of
several ops.\n
| op | bodies | eager | traced | compiled | interpreter | plugin |\n|---|---|---|---|---|---|---|\n")
  file(STRINGS "${MODES}" lines)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^(.+) (.+)$" _ "${line}")
    string(APPEND table "| `${CMAKE_MATCH_1}` | ${CMAKE_MATCH_2} | yes | yes | yes | yes | ${plugin_${CMAKE_MATCH_1}} |\n")
  endforeach()
else()
  message("==> without the table of ops in every mode, which the test checks/conformance writes")
endif()
file(WRITE "${BUILD}/ops.md" "# Ops {#ops}\n\n${table}")
execute_process(COMMAND "${python3}" "${CMAKE_CURRENT_LIST_DIR}/pytorch_table.py" "${XLA_ROOT}/include"
  OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${BUILD}/pytorch.md" "# PyTorch's functions {#pytorch}\n\n${table}")
execute_process(COMMAND "${python3}" "${CMAKE_CURRENT_LIST_DIR}/pytorch_xla_table.py" "${XLA_ROOT}"
  OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
file(WRITE "${BUILD}/pytorch_xla.md" "# PyTorch/XLA's names {#pytorch_xla}\n\n${table}")

# The sidebar has the four kinds of pages. Doxygen names a page of Markdown after its path.
function(xla_docs_tab out file title)
  string(REGEX REPLACE "[.]md$" "" page "${file}")
  string(REPLACE "/" "_" page "md_${page}")
  if(title STREQUAL "")
    file(STRINGS "${XLA_ROOT}/${file}" title REGEX "^# " LIMIT_COUNT 1)
    string(SUBSTRING "${title}" 2 -1 title)
    string(REPLACE "&" "&amp;" title "${title}")
  endif()
  set(${out} "${${out}}<tab type=\"user\" url=\"@ref ${page}\" title=\"${title}\"/>\n" PARENT_SCOPE)
endfunction()
set(tutorials "")
xla_docs_tab(tutorials examples/README.md "The course and programs")
file(GLOB pages RELATIVE "${XLA_ROOT}" "${XLA_ROOT}/examples/*/README.md")
list(REMOVE_ITEM pages examples/explanation/README.md)
string(REPLACE ";" "\" \"${XLA_ROOT}/" programs "${pages}")  # for Doxyfile.in
foreach(page IN LISTS pages)
  xla_docs_tab(tutorials "${page}" "")
endforeach()
set(howto "")
file(GLOB pages RELATIVE "${XLA_ROOT}" "${XLA_ROOT}/examples/howto/*.md")
foreach(page IN LISTS pages)
  xla_docs_tab(howto "${page}" "")
endforeach()
xla_docs_tab(howto CONTRIBUTING.md "")
set(explanation "")
file(GLOB pages RELATIVE "${XLA_ROOT}" "${XLA_ROOT}/examples/explanation/*.md")
list(REMOVE_ITEM pages examples/explanation/README.md)
foreach(page IN LISTS pages ITEMS include/xla/README.md include/xla/loop/README.md)
  xla_docs_tab(explanation "${page}" "")
endforeach()
set(reference "")
xla_docs_tab(reference include/xla/op/README.md "")
set(figures "")
foreach(page IN ITEMS bench/README.md bench/parts.md bench/results/README.md tests/README.md CHANGELOG.md)
  xla_docs_tab(figures "${page}" "")
endforeach()
file(WRITE "${BUILD}/layout.xml" "<doxygenlayout version=\"1.0\"><navindex>
<tab type=\"mainpage\" visible=\"yes\" title=\"\"/>
<tab type=\"usergroup\" url=\"[none]\" title=\"Tutorials\">\n${tutorials}</tab>
<tab type=\"usergroup\" url=\"[none]\" title=\"How to\">\n${howto}</tab>
<tab type=\"usergroup\" url=\"[none]\" title=\"Explanation\">\n${explanation}</tab>
<tab type=\"usergroup\" url=\"[none]\" title=\"Reference\">
<tab type=\"user\" url=\"@ref ops\" title=\"Ops\"/>\n<tab type=\"user\" url=\"@ref pytorch\" title=\"PyTorch's functions\"/>
<tab type=\"user\" url=\"@ref pytorch_xla\" title=\"PyTorch/XLA's names\"/>
${reference}<tab type=\"namespacelist\" visible=\"yes\" title=\"Namespaces\"/>
<tab type=\"namespacemembers\" visible=\"yes\" title=\"Functions\"/>
<tab type=\"classlist\" visible=\"yes\" title=\"Classes\"/>
<tab type=\"filelist\" visible=\"yes\" title=\"Headers\"/>
</tab>
<tab type=\"usergroup\" url=\"[none]\" title=\"Figures, tests, changes\">\n${figures}</tab>
</navindex></doxygenlayout>\n")

# The theme doxygen-awesome, with a switch between dark and light; without its package Doxygen's own look.
set(style "")
set(scripts "")
set(header "")
set(awesome /usr/share/doxygen-awesome-css)
if(EXISTS "${awesome}/doxygen-awesome.css")
  file(WRITE "${BUILD}/phone.css" "/* Nothing is wider than a phone's screen: what is, scrolls by itself. */
.contents table.markdownTable, .contents table.doxtable { display: block; overflow-x: auto; max-width: 100%; }
.contents .fragment { overflow-x: auto; }
.contents img { max-width: 100%; height: auto; }
.contents a, .contents code, .contents p, .contents li { overflow-wrap: anywhere; }
.contents td a, .contents td code { overflow-wrap: break-word; }
.contents th code { white-space: nowrap; }
/* Sections are smaller than the page's title, and long titles of the sidebar have a second line. */
.contents h1 { font-size: 1.5rem; }
.contents h2 { font-size: 1.2rem; }
.contents h3 { font-size: 1.05rem; }
#nav-tree .item { height: auto; min-height: var(--tree-item-height); }
#nav-tree .label a { display: inline-block; max-width: 265px; white-space: normal; line-height: 1.3; padding: 5px 0; }
/* The theme's colours, as far from their background as WCAG asks for: 4.5 to 1. */
html {
  --primary-color: #0f629f; --page-secondary-foreground-color: #5a6876;
  --fragment-keyword: #8e3a85; --fragment-keywordtype: #6a3fa0; --fragment-keywordflow: #8f4a12;
  --fragment-token: #2c6e40; --fragment-comment: #626a70; --fragment-link: #1f57b8;
  --fragment-preprocessor: #1b6f6b; --fragment-linenumber-color: #5f6468;
}
")
  set(dark "--primary-color: #58aef0; --page-secondary-foreground-color: #98a5b1; --fragment-keyword: #cc99cd;
  --fragment-keywordtype: #b9a8dc; --fragment-keywordflow: #e89030; --fragment-token: #7ec699; --fragment-comment: #a5a5a5;
  --fragment-link: #98c0e3; --fragment-preprocessor: #65cabe; --fragment-linenumber-color: #cccccc;")
  file(APPEND "${BUILD}/phone.css" "html.dark-mode { ${dark} }
@media (prefers-color-scheme: dark) { html:not(.light-mode) { ${dark} } }
span.charliteral, span.stringliteral { color: var(--fragment-token); }
span.mlabel { color: var(--page-background-color); }
")
  set(style "\"${awesome}/doxygen-awesome.css\" \"${awesome}/doxygen-awesome-sidebar-only.css\" \"${awesome}/doxygen-awesome-sidebar-only-darkmode-toggle.css\" \"${BUILD}/phone.css\"")
  set(scripts "\"${awesome}/doxygen-awesome-darkmode-toggle.js\"")
  set(header "${BUILD}/header.html")
  execute_process(COMMAND "${doxygen}" -w html "${header}" "${BUILD}/footer.html" "${BUILD}/unused.css"
    OUTPUT_QUIET ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(READ "${header}" text)
  string(REPLACE "</head>" "<script type=\"text/javascript\" src=\"$relpath^doxygen-awesome-darkmode-toggle.js\"></script>
<script type=\"text/javascript\">DoxygenAwesomeDarkModeToggle.init()</script>
</head>" text "${text}")
  file(WRITE "${header}" "${text}")
else()
  message("==> without the theme of the package doxygen-awesome-css")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/Doxyfile.in" "${BUILD}/Doxyfile" @ONLY)
execute_process(COMMAND "${doxygen}" -q "${BUILD}/Doxyfile" WORKING_DIRECTORY "${XLA_ROOT}"
  COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${python3}" -B "${CMAKE_CURRENT_LIST_DIR}/docs_links.py" "${XLA_ROOT}" "${BUILD}/html"
  COMMAND_ERROR_IS_FATAL ANY)
# Broken links fail; where there is a browser to lay them out, so do pages wider than a phone's screen, and, where pip
# finds axe-core, faults of accessibility.
find_program(chromium NAMES chromium-headless-shell chromium)
set(axe "")
if(NOT chromium)
  set(chromium "")
  message("==> without the checks of width and accessibility, which take chromium-headless-shell")
else()
  set(axe "${BUILD}/axe/axe_playwright_python/axe.min.js")  # a package that carries axe-core
  if(NOT EXISTS "${axe}")
    execute_process(COMMAND "${python3}" -m pip download --quiet --no-deps --dest "${BUILD}/axe" axe-playwright-python==0.1.8
      OUTPUT_QUIET ERROR_QUIET)
    file(GLOB wheel "${BUILD}/axe/*.whl")
    if(wheel)
      file(ARCHIVE_EXTRACT INPUT "${wheel}" DESTINATION "${BUILD}/axe")
    endif()
  endif()
  if(NOT EXISTS "${axe}")
    set(axe "")
    message("==> without the check of accessibility, for which pip finds no axe-playwright-python")
  endif()
endif()
execute_process(COMMAND "${python3}" -B "${CMAKE_CURRENT_LIST_DIR}/docs_check.py" "${BUILD}/html" ${chromium} ${axe}
  COMMAND_ERROR_IS_FATAL ANY)
message("==> ${BUILD}/html/index.html")
