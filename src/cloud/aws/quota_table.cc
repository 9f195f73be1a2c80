#include "cloud/aws/quota_table.h"

#include <fmt/core.h>

#include <array>

namespace lockstep::cloud::aws {
namespace {

struct QuotaRow {
  std::string_view family;  // start of a type's name
  std::string_view on_demand;
  std::string_view spot;
};

// The first matching row wins. AWS counts GPU quotas in vCPUs, by family, and apart for spot.
// Sources disagree on the spot quota of P6.
constexpr std::array kQuotaRows{
    QuotaRow{"p5", "L-417A185B", "L-C4BD4855"}, QuotaRow{"p6", "L-417A185B", ""},
    QuotaRow{"p", "L-417A185B", "L-7212CCBC"},  QuotaRow{"g", "L-DB2E81BA", "L-3819A6DF"},
    QuotaRow{"vt", "L-DB2E81BA", "L-3819A6DF"}, QuotaRow{"t", "L-1216C47A", "L-34B43A08"},
};

}  // namespace

std::string_view quota_code(std::string_view type, bool spot) {
  for (const QuotaRow& row : kQuotaRows)
    if (type.starts_with(row.family)) return spot ? row.spot : row.on_demand;
  return {};
}

std::string quota_link(std::string_view region, std::string_view code) {
  return fmt::format("https://{}.console.aws.amazon.com/servicequotas/home/services/ec2/quotas/{}",
                     region, code);
}

}  // namespace lockstep::cloud::aws
