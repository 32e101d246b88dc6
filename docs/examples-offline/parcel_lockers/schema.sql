CREATE TABLE locker_stations (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    phone TEXT NOT NULL,
    is_open BOOLEAN NOT NULL CHECK (is_open IN (0, 1))
);
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('locker_agent', 'depot_clerk', 'courier', 'service_engineer')),
    locker_station_id INTEGER,
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    FOREIGN KEY (locker_station_id) REFERENCES locker_stations (id) ON DELETE RESTRICT
);
CREATE INDEX ix_users_locker_station_id ON users (locker_station_id);
CREATE TABLE service_classes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL CHECK (position >= 1)
);
CREATE TABLE parcel_services (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    service_class_id INTEGER NOT NULL,
    compartment TEXT NOT NULL CHECK (compartment IN ('S', 'M', 'L', 'XL', 'cool')),
    hold_hours INTEGER NOT NULL CHECK (hold_hours >= 0),
    max_weight_kg INTEGER NOT NULL CHECK (max_weight_kg >= 0),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    created_at DATETIME NOT NULL,
    FOREIGN KEY (service_class_id) REFERENCES service_classes (id) ON DELETE RESTRICT
);
CREATE INDEX ix_parcel_services_service_class_id ON parcel_services (service_class_id);
CREATE TABLE recipients (
    id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    phone TEXT,
    account_kind TEXT NOT NULL CHECK (account_kind IN ('guest', 'registered', 'business', 'family')),
    town TEXT,
    joined_on DATE NOT NULL,
    is_blocked BOOLEAN NOT NULL CHECK (is_blocked IN (0, 1))
);
CREATE TABLE postage_orders (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    recipient_id INTEGER NOT NULL,
    locker_station_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('draft', 'paid', 'used', 'cancelled', 'refunded')),
    goods_cents INTEGER NOT NULL CHECK (goods_cents >= 0),
    total_cents INTEGER NOT NULL CHECK (total_cents >= 0),
    created_at DATETIME NOT NULL,
    placed_at DATETIME,
    closed_at DATETIME,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT,
    FOREIGN KEY (locker_station_id) REFERENCES locker_stations (id) ON DELETE RESTRICT
);
CREATE INDEX ix_postage_orders_recipient_id ON postage_orders (recipient_id);
CREATE INDEX ix_postage_orders_locker_station_id ON postage_orders (locker_station_id);
CREATE TABLE postage_lines (
    id INTEGER PRIMARY KEY,
    postage_order_id INTEGER NOT NULL,
    parcel_service_id INTEGER NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 1000),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    UNIQUE (postage_order_id, parcel_service_id),
    FOREIGN KEY (postage_order_id) REFERENCES postage_orders (id) ON DELETE CASCADE,
    FOREIGN KEY (parcel_service_id) REFERENCES parcel_services (id) ON DELETE RESTRICT
);
CREATE INDEX ix_postage_lines_parcel_service_id ON postage_lines (parcel_service_id);
CREATE TABLE compartment_banks (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    locker_station_id INTEGER NOT NULL,
    capacity INTEGER NOT NULL CHECK (capacity >= 1),
    fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    FOREIGN KEY (locker_station_id) REFERENCES locker_stations (id) ON DELETE RESTRICT
);
CREATE INDEX ix_compartment_banks_locker_station_id ON compartment_banks (locker_station_id);
CREATE TABLE storage_slots (
    id INTEGER PRIMARY KEY,
    compartment_bank_id INTEGER NOT NULL,
    starts_at DATETIME NOT NULL,
    ends_at DATETIME NOT NULL,
    capacity INTEGER NOT NULL CHECK (capacity >= 1),
    is_open BOOLEAN NOT NULL CHECK (is_open IN (0, 1)),
    UNIQUE (compartment_bank_id, starts_at),
    CHECK (ends_at > starts_at),
    FOREIGN KEY (compartment_bank_id) REFERENCES compartment_banks (id) ON DELETE RESTRICT
);
CREATE TABLE compartment_bookings (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    recipient_id INTEGER NOT NULL,
    storage_slot_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('reserved', 'collected', 'overdue', 'released')),
    fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
    booked_at DATETIME NOT NULL,
    cancelled_at DATETIME,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT,
    FOREIGN KEY (storage_slot_id) REFERENCES storage_slots (id) ON DELETE RESTRICT
);
CREATE INDEX ix_compartment_bookings_recipient_id ON compartment_bookings (recipient_id);
CREATE INDEX ix_compartment_bookings_storage_slot_id ON compartment_bookings (storage_slot_id);
CREATE TABLE delivery_vans (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    locker_station_id INTEGER NOT NULL,
    capacity_kg INTEGER NOT NULL CHECK (capacity_kg >= 1),
    is_in_service BOOLEAN NOT NULL CHECK (is_in_service IN (0, 1)),
    FOREIGN KEY (locker_station_id) REFERENCES locker_stations (id) ON DELETE RESTRICT
);
CREATE INDEX ix_delivery_vans_locker_station_id ON delivery_vans (locker_station_id);
CREATE TABLE depot_runs (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    delivery_van_id INTEGER NOT NULL,
    runs_on DATE NOT NULL,
    left_at DATETIME,
    UNIQUE (delivery_van_id, runs_on),
    FOREIGN KEY (delivery_van_id) REFERENCES delivery_vans (id) ON DELETE RESTRICT
);
CREATE TABLE parcels (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    recipient_id INTEGER NOT NULL,
    town TEXT NOT NULL,
    weight_kg INTEGER NOT NULL CHECK (weight_kg >= 1),
    depot_run_id INTEGER,
    status TEXT NOT NULL CHECK (status IN ('announced', 'loaded', 'delivered', 'undeliverable', 'recalled')),
    created_at DATETIME NOT NULL,
    delivered_at DATETIME,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT,
    FOREIGN KEY (depot_run_id) REFERENCES depot_runs (id) ON DELETE RESTRICT
);
CREATE INDEX ix_parcels_recipient_id ON parcels (recipient_id);
CREATE INDEX ix_parcels_depot_run_id ON parcels (depot_run_id);
CREATE TABLE service_matters (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    recipient_id INTEGER NOT NULL,
    topic TEXT NOT NULL CHECK (topic IN ('code', 'door', 'loss', 'time', 'redirect')),
    priority TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    status TEXT NOT NULL CHECK (status IN ('open', 'in_check', 'waiting', 'solved', 'closed')),
    assignee_id INTEGER,
    resolution TEXT CHECK (resolution IN ('opened remotely', 'parcel found', 'paid', 'redirected', 'engineer sent')),
    opened_at DATETIME NOT NULL,
    resolved_at DATETIME,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT,
    FOREIGN KEY (assignee_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_service_matters_recipient_id ON service_matters (recipient_id);
CREATE INDEX ix_service_matters_assignee_id ON service_matters (assignee_id);
CREATE TABLE station_files (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    number TEXT NOT NULL UNIQUE,
    recipient_id INTEGER NOT NULL,
    locker_station_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_service', 'check_due', 'removed')),
    reading INTEGER NOT NULL CHECK (reading >= 0),
    due_on DATE NOT NULL,
    registered_at DATETIME NOT NULL,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT,
    FOREIGN KEY (locker_station_id) REFERENCES locker_stations (id) ON DELETE RESTRICT
);
CREATE INDEX ix_station_files_recipient_id ON station_files (recipient_id);
CREATE INDEX ix_station_files_locker_station_id ON station_files (locker_station_id);
CREATE TABLE station_checks (
    id INTEGER PRIMARY KEY,
    station_file_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('round', 'repair', 'cleaning', 'count')),
    done_on DATE NOT NULL,
    reading INTEGER NOT NULL CHECK (reading >= 0),
    finding TEXT NOT NULL,
    entered_at DATETIME NOT NULL,
    FOREIGN KEY (station_file_id) REFERENCES station_files (id) ON DELETE CASCADE
);
CREATE INDEX ix_station_checks_station_file_id ON station_checks (station_file_id);
CREATE TABLE notice_threads (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('open', 'archived')),
    created_at DATETIME NOT NULL,
    last_sent_at DATETIME
);
CREATE TABLE notice_thread_recipients (
    id INTEGER PRIMARY KEY,
    notice_thread_id INTEGER NOT NULL,
    recipient_id INTEGER NOT NULL,
    added_at DATETIME NOT NULL,
    UNIQUE (notice_thread_id, recipient_id),
    FOREIGN KEY (notice_thread_id) REFERENCES notice_threads (id) ON DELETE CASCADE,
    FOREIGN KEY (recipient_id) REFERENCES recipients (id) ON DELETE RESTRICT
);
CREATE INDEX ix_notice_thread_recipients_recipient_id ON notice_thread_recipients (recipient_id);
CREATE TABLE notices (
    id INTEGER PRIMARY KEY,
    notice_thread_id INTEGER NOT NULL,
    sender_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    sent_at DATETIME NOT NULL,
    FOREIGN KEY (notice_thread_id) REFERENCES notice_threads (id) ON DELETE CASCADE,
    FOREIGN KEY (sender_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_notices_notice_thread_id ON notices (notice_thread_id);
CREATE INDEX ix_notices_sender_id ON notices (sender_id);
