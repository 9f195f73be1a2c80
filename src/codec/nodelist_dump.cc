// Test tool: reads lists of nodes from stdin, one per line. Prints the names of each as a JSON
// array, or null for a refused list. With the word "time": prints the milliseconds for each list.
#include "codec/json.h"
#include "codec/nodelist.h"

#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

int main(int argc, char** argv) {
  const bool timed = argc > 1 && std::string_view(argv[1]) == "time";
  for (std::string line; std::getline(std::cin, line);) {
    const auto began = std::chrono::steady_clock::now();
    const auto names = lockstep::codec::expand_nodelist(line);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - began;
    if (timed)
      std::printf("%.3f\n", took.count());
    else
      std::puts(
          lockstep::codec::print_json(names ? nlohmann::json(*names) : nlohmann::json()).c_str());
  }
  return 0;
}
