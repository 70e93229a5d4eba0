#include "store/http_transport.h"

#include <utility>

namespace grebe::store {

void HttpRequest::AddHeader(std::string_view name, std::string_view value) {
  headers += name;
  headers += ": ";
  for (const char c : value) headers.push_back(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
  headers.push_back('\0');
}

void HttpInbox::Push(std::span<const std::shared_ptr<HttpExchange>> done) {
  {
    std::lock_guard lock(mutex_);
    done_.insert(done_.end(), done.begin(), done.end());
  }
  wake_.notify_one();
}

std::shared_ptr<HttpExchange> HttpInbox::TryPop(bool* more) {
  std::lock_guard lock(mutex_);
  *more = false;
  if (done_.empty()) return nullptr;
  std::shared_ptr<HttpExchange> exchange = std::move(done_.front());
  done_.pop_front();
  *more = !done_.empty();
  return exchange;
}

std::shared_ptr<HttpExchange> HttpInbox::Pop(Clock::time_point deadline, bool* more) {
  std::unique_lock lock(mutex_);
  const auto ready = [this] { return nudged_ || !done_.empty(); };
  *more = false;
  if (deadline == Clock::time_point::max()) {
    wake_.wait(lock, ready);
  } else {
    wake_.wait_until(lock, deadline, ready);
  }
  nudged_ = false;
  if (done_.empty()) return nullptr;
  std::shared_ptr<HttpExchange> exchange = std::move(done_.front());
  done_.pop_front();
  *more = !done_.empty();
  return exchange;
}

bool HttpInbox::Ready() {
  std::lock_guard lock(mutex_);
  return nudged_ || !done_.empty();
}

void HttpInbox::Nudge() {
  {
    std::lock_guard lock(mutex_);
    nudged_ = true;
  }
  wake_.notify_all();
}

HttpResponse RunHttp(HttpTransport* transport, HttpRequest request) {
  auto exchange = std::make_shared<HttpExchange>();
  exchange->request = std::move(request);
  exchange->inbox = std::make_shared<HttpInbox>();
  transport->Start(exchange, /*caller_drives=*/true);
  bool more = false;
  std::shared_ptr<HttpExchange> done;
  while (done == nullptr) {
    done = PopDriving(transport, exchange->inbox.get(), Clock::time_point::max(), &more);
  }
  return std::move(done->response);
}

std::shared_ptr<HttpExchange> PopDriving(HttpTransport* transport, HttpInbox* inbox,
                                         Clock::time_point deadline, bool* more) {
  const bool alone = inbox->Ready() || transport->Drive(inbox, deadline);
  // Nobody drives now. Waiting here would be for ever if a helper has taken what was ready.
  return inbox->Pop(alone ? Clock::now() : deadline, more);
}

}  // namespace grebe::store
