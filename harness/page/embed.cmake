# cmake -DSOURCE=FOLDER -DOUTPUT=HEADER -P embed.cmake: the page's template, style and script as strings of a header.
set(text "// Made from harness/page/ by embed.cmake.\n#pragma once\n\n#include <string_view>\n\nnamespace attest {\n\n")
foreach(part IN ITEMS Template=page.mustache Style=page.css Script=page.js)
  string(REGEX MATCH "^([A-Za-z]+)=(.+)$" matched ${part})
  set(name ${CMAKE_MATCH_1})
  file(READ ${SOURCE}/${CMAKE_MATCH_2} content)
  string(APPEND text "inline constexpr std::string_view kPage${name} = R\"attest_page(${content})attest_page\";\n\n")
endforeach()
file(WRITE ${OUTPUT} "${text}}  // namespace attest\n")
