// Rows of a sweep: files of users, and the records of hosts. What was read must be printed and read
// again as the same.
#include "codec/json.h"
#include "rows/row_book.h"
#include "rows/table.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace lockstep;

void must(bool fact) {
  if (!fact) std::abort();
}

void read_file(std::string_view text) {
  const auto table = rows::read_csv(text);
  if (!table) return;
  const std::string printed = rows::print_csv(*table);
  // Quotes may make the text longer than a file may be.
  const auto again = rows::read_csv(printed);
  if (printed.size() <= rows::kMostFile) must(again && *again == *table);
  for (std::size_t row = 0; row < table->rows.size() && row < 3; ++row) {
    (void)rows::filled(text.substr(0, 200), *table, row);
    must(rows::row_variables(*table, row).size() == table->names.size() + 1);
  }
}

void read_records(std::string_view text) {
  const auto records = rows::read_book(text);
  const auto told = codec::parse_json(codec::print_json(rows::to_json(records)));
  const auto again = rows::records_from_json(told);
  must(again && again->size() == records.size());
  must(rows::sets_of(*again) == rows::sets_of(records));
  (void)rows::records_from_json(codec::parse_json(text));
  (void)rows::last_line_of(codec::parse_json(text), 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_file(text);
  (void)rows::grid({std::string(text)});
  (void)rows::wanted_values(text);
  if (const auto set = rows::read_row_set(text, 100)) {
    const auto again = rows::read_row_set(rows::print_row_set(*set), 100);
    must(again && *again == *set);
  }
  read_records(text);
  return 0;
}
