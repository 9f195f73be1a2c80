// The page itself: one HTML file with its own style and script, which asks nothing of other
// servers.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::page {

// Made by CMake from page.html, page.css and page.js.
std::string_view page_frame();  // with {{style}} and {{script}} for the other two
std::string_view page_style();
std::string_view page_script();

// The whole page.
std::string page_html();
// The value of its Content-Security-Policy: only this style and this script may run, and requests
// go to this server alone.
std::string page_policy();

}  // namespace lockstep::page
