// Who waits for whom: a fake transport stands for the network.
#include "store/http_transport.h"

#include <gtest/gtest.h>

#include <memory>

namespace grebe::store {
namespace {

// Each Drive finishes one exchange; the first ones are taken by another thread at once, as the
// helper of a wave does.
class StolenTransport final : public HttpTransport {
 public:
  explicit StolenTransport(int stolen) : stolen_(stolen) {}

  void Start(std::shared_ptr<HttpExchange> exchange, bool) override {
    exchange_ = std::move(exchange);
  }
  bool Drive(HttpInbox* inbox, Clock::time_point) override {
    ++drives_;
    inbox->Push({&exchange_, 1});
    bool more = false;
    if (drives_ <= stolen_) inbox->TryPop(&more);
    return true;
  }
  void Wake() override {}

  int drives() const { return drives_; }

 private:
  const int stolen_;
  int drives_ = 0;
  std::shared_ptr<HttpExchange> exchange_;
};

TEST(PopDriving, DoesNotWaitForWhatAHelperTook) {
  StolenTransport transport(/*stolen=*/2);
  HttpInbox inbox;
  const auto exchange = std::make_shared<HttpExchange>();
  transport.Start(exchange, true);
  bool more = true;
  for (int taken = 1; taken <= 2; ++taken) {
    // Nobody would drive while this waited: once it waited for ever.
    EXPECT_EQ(PopDriving(&transport, &inbox, Clock::time_point::max(), &more), nullptr);
    EXPECT_FALSE(more);
    EXPECT_EQ(transport.drives(), taken);
  }
  EXPECT_EQ(PopDriving(&transport, &inbox, Clock::time_point::max(), &more), exchange);
}

TEST(PopDriving, ANudgeIsSeenOnce) {
  StolenTransport transport(/*stolen=*/0);
  HttpInbox inbox;
  const auto exchange = std::make_shared<HttpExchange>();
  transport.Start(exchange, true);
  inbox.Nudge();
  bool more = true;
  EXPECT_EQ(PopDriving(&transport, &inbox, Clock::time_point::max(), &more), nullptr);
  EXPECT_EQ(transport.drives(), 0);
  EXPECT_EQ(PopDriving(&transport, &inbox, Clock::time_point::max(), &more), exchange);
  EXPECT_EQ(transport.drives(), 1);
}

}  // namespace
}  // namespace grebe::store
