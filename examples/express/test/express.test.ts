import { testOrdersApi } from '../../../scripts/examples/orders-api-tests.ts';

testOrdersApi('express');
